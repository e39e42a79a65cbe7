//! Recurrent layers of cells, and those that keep their state, have the numbers of Keras.

use crate::recorded::{check, check_call, check_layer, filled, numbers};
use ferroflow_nn::{
    Gru, GruCell, Layer, LayerValue, Lstm, LstmCell, Mode, Module, RecurrentLayer, Rnn,
    StackedRnnCells, Stateful, Weights,
};
use ferroflow_runtime::trackable::ObjectGraph;
use ferroflow_tracer::{Result, Tensor, function};

fn mask() -> Result<Tensor> {
    let mask = [true, true, false, true, false, false, true, true, false, false];
    Tensor::from(mask).reshape(&[2, 5])
}

fn stacked_gru() -> Result<Rnn<StackedRnnCells<GruCell>>> {
    let w = &mut Weights::new();
    let cells = [GruCell::new(w, 3, 4)?, GruCell::new(w, 4, 2)?];
    Ok(Rnn::of_sequences(StackedRnnCells::new(cells)?))
}

#[test]
fn layers_of_cells() -> Result<()> {
    let w = &mut Weights::new();
    check_layer("cells lstm", Ok(Rnn::of_sequences(LstmCell::new(w, 3, 4)?)), &[2, 5, 3]);
    check_layer("cells gru", Ok(Rnn::new(GruCell::new(w, 3, 4)?).backwards()), &[2, 5, 3]);
    let cells = StackedRnnCells::new([LstmCell::new(w, 3, 4)?, LstmCell::new(w, 4, 2)?])?;
    check_layer("cells stacked lstm", Ok(Rnn::new(cells)), &[2, 5, 3]);
    check_layer("cells stacked gru", stacked_gru(), &[2, 5, 3]);
    let layer = filled(stacked_gru())?;
    let weights = layer.trainable_variables()?;
    check_call("cells masked", &weights, &numbers(&[2, 5, 3])?, move |x| {
        Ok(layer.propagate(&LayerValue::masked(x.clone(), mask()?), Mode::Training)?.tensor)
    });
    assert!(StackedRnnCells::<GruCell>::new([]).is_err());
    Ok(())
}

/// Two batches one after the other.
fn check_stateful<L: RecurrentLayer + Clone + 'static>(name: &str, layer: Result<L>) -> Result<()> {
    let (layer, x) = (filled(layer)?, numbers(&[2, 5, 3])?);
    let eager = Stateful::new(layer.clone(), &x)?;
    let stateful = Stateful::new(layer, &x)?;
    let staged = function({
        let layer = stateful.clone();
        move |x: LayerValueParts| {
            let x = LayerValue { mask: x.1, ..LayerValue::from(x.0) };
            Ok::<_, ferroflow_tracer::Error>(layer.propagate(&x, Mode::Inference)?.tensor)
        }
    });
    let more = (&x + 0.1)?;
    for _ in 0..2 {
        check(&format!("stateful {name} first"), &eager.call(&x, Mode::Inference)?);
        let second =
            eager.propagate(&LayerValue::masked(more.clone(), mask()?), Mode::Inference)?;
        check(&format!("stateful {name} second"), &second.tensor);
        check(&format!("stateful {name} first"), &staged.call(((x.clone(), None),))?);
        let second = staged.call(((more.clone(), Some(mask()?)),))?;
        check(&format!("stateful {name} second"), &second);
        for layer in [&eager, &stateful] {
            let states = layer.variables()?.into_iter().filter(|variable| !variable.is_trainable());
            for (index, state) in states.enumerate() {
                check(&format!("stateful {name} state {index}"), &state.read()?);
            }
            layer.reset()?;
        }
    }
    let graph = ObjectGraph::of(&eager)?;
    let edges: Vec<&str> = graph.nodes[0].edges().filter(|edge| *edge != "_steps").collect();
    assert_eq!(edges, ["cell", "states"]);
    Ok(())
}

type LayerValueParts = (Tensor, Option<Tensor>);

#[test]
fn states_go_on_from_batch_to_batch() -> Result<()> {
    let w = &mut Weights::new();
    check_stateful("lstm", Lstm::new(w, 3, 4))?;
    check_stateful("gru", Gru::of_sequences(w, 3, 4))
}
