//! Profiles: how often programs have statements of which kind.

use super::{
    Gen, Template, calls, control, dynamic, elementwise, gradients, layers, lists, reductions,
    resize, state, strings, views,
};

/// A family of templates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Category {
    Elementwise,
    Views,
    Dynamic,
    Reductions,
    Layers,
    Control,
    Lists,
    State,
    Strings,
    Gradients,
    Calls,
    Alias,
    Resize,
    ResizeGradients,
}

use Category as C;

/// A category: how often, whether nested blocks come with it, and its templates by weight.
type Weighted = (Category, f64, bool, &'static [(f64, Template)]);

/// All categories.
const CATEGORIES: &[Weighted] = &[
    (C::Elementwise, 5.0, false, elementwise::TEMPLATES),
    (C::Views, 6.0, false, views::TEMPLATES),
    (C::Dynamic, 2.5, false, dynamic::TEMPLATES),
    (C::Reductions, 2.5, false, reductions::TEMPLATES),
    (C::Layers, 2.0, false, layers::TEMPLATES),
    (C::Control, 2.2, true, control::TEMPLATES),
    (C::Lists, 1.0, true, lists::TEMPLATES),
    (C::State, 1.2, false, state::TEMPLATES),
    (C::Strings, 0.6, false, strings::TEMPLATES),
    (C::Gradients, 1.0, true, gradients::TEMPLATES),
    (C::Calls, 0.7, true, calls::TEMPLATES),
    (C::Alias, 0.8, false, views::CHAINS),
    (C::Resize, 0.3, true, resize::TEMPLATES),
    (C::ResizeGradients, 0.2, true, resize::GRADIENTS),
];

/// A profile of programs.
#[derive(Debug)]
pub(crate) struct GeneratorProfile {
    pub(crate) name: &'static str,
    /// Factors of the weights of categories.
    weights: &'static [(Category, f64)],
    /// The probability of variables.
    pub(super) variables: f64,
    /// The probability that a statement asks for a device.
    pub(super) devices: f64,
    pub(super) is_long: bool,
    /// Whether there are few results.
    pub(super) is_digest: bool,
    /// Whether ranks are high.
    pub(super) is_deep: bool,
    pub(super) has_strings: bool,
    pub(super) has_outer_gradient: bool,
}

const MIX: GeneratorProfile = GeneratorProfile {
    name: "mix",
    weights: &[],
    variables: 0.4,
    devices: 0.02,
    is_long: false,
    is_digest: false,
    is_deep: false,
    has_strings: false,
    has_outer_gradient: false,
};

/// All profiles.
pub(crate) const PROFILES: &[GeneratorProfile] = &[
    MIX,
    GeneratorProfile { name: "views", weights: &[(C::Views, 4.0), (C::Dynamic, 2.0)], ..MIX },
    GeneratorProfile { name: "dynamic", weights: &[(C::Dynamic, 6.0), (C::Views, 2.0)], ..MIX },
    GeneratorProfile {
        name: "alias",
        weights: &[(C::Alias, 8.0), (C::Views, 3.0), (C::Control, 0.4)],
        is_long: true,
        is_digest: true,
        ..MIX
    },
    GeneratorProfile { name: "control", weights: &[(C::Control, 5.0)], ..MIX },
    GeneratorProfile { name: "lists", weights: &[(C::Lists, 9.0), (C::Control, 2.0)], ..MIX },
    GeneratorProfile {
        name: "state",
        weights: &[(C::State, 8.0), (C::Control, 3.0)],
        variables: 1.0,
        ..MIX
    },
    GeneratorProfile {
        name: "gradients",
        weights: &[(C::Gradients, 8.0), (C::Control, 2.0)],
        ..MIX
    },
    GeneratorProfile {
        name: "outer",
        weights: &[(C::Gradients, 2.0), (C::Control, 2.0), (C::Lists, 2.0), (C::Calls, 2.0)],
        has_outer_gradient: true,
        is_digest: true,
        ..MIX
    },
    GeneratorProfile {
        name: "resize",
        weights: &[(C::Resize, 10.0), (C::ResizeGradients, 20.0), (C::Gradients, 2.0)],
        has_outer_gradient: true,
        is_digest: true,
        ..MIX
    },
    GeneratorProfile {
        name: "layers",
        weights: &[(C::Layers, 7.0)],
        is_deep: true,
        is_long: true,
        ..MIX
    },
    GeneratorProfile { name: "calls", weights: &[(C::Calls, 8.0), (C::Control, 2.0)], ..MIX },
    GeneratorProfile { name: "strings", weights: &[(C::Strings, 9.0)], has_strings: true, ..MIX },
    GeneratorProfile {
        name: "devices",
        weights: &[(C::State, 3.0)],
        devices: 0.35,
        variables: 0.8,
        ..MIX
    },
];

/// The templates of a category, chosen by weight.
pub(super) fn templates(g: &mut Gen) -> &'static [(f64, Template)] {
    let weight = |&(category, weight, is_nested, _): &(Category, f64, bool, _)| {
        let factor = g.profile.weights.iter().find(|(known, _)| *known == category);
        let nesting = match (is_nested, g.depth) {
            (false, _) | (true, 0) => 1.0,
            (true, 1 | 2) => 0.35,
            (true, _) => 0.0,
        };
        weight * factor.map_or(1.0, |(_, factor)| *factor) * nesting
    };
    let weights: Vec<f64> = CATEGORIES.iter().map(weight).collect();
    CATEGORIES[g.rng.weighted(&weights)].3
}
