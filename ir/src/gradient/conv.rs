//! Gradients of convolutions: convolutions again.

use super::{Backprop, Grads, only, shapes::shape_i32};
use crate::emit::Value;

/// The ops of one family of convolutions.
struct Family {
    forward: &'static str,
    by_input: &'static str,
    by_filter: &'static str,
}

const CONV_2D: Family = Family {
    forward: "Conv2D",
    by_input: "Conv2DBackpropInput",
    by_filter: "Conv2DBackpropFilter",
};

const CONV_3D: Family = Family {
    forward: "Conv3D",
    by_input: "Conv3DBackpropInputV2",
    by_filter: "Conv3DBackpropFilterV2",
};

const DEPTHWISE: Family = Family {
    forward: "DepthwiseConv2dNative",
    by_input: "DepthwiseConv2dNativeBackpropInput",
    by_filter: "DepthwiseConv2dNativeBackpropFilter",
};

impl Family {
    /// Whether the first ops for gradients refuse the call, as they do in TensorFlow: those that came
    /// later take tensors instead of their shapes.
    fn is_dilated(&self, b: &Backprop<'_>) -> bool {
        self.forward == CONV_2D.forward
            && b.int_list("dilations").iter().any(|&dilation| dilation > 1)
    }

    fn input<'e>(
        &self,
        b: &Backprop<'e>,
        like: Value<'e>,
        filter: Value<'e>,
        dy: Value<'e>,
    ) -> Value<'e> {
        if self.is_dilated(b) {
            return b.with_attrs("Conv2DBackpropInputV2", [like, filter, dy]);
        }
        b.with_attrs(self.by_input, [shape_i32(like), filter, dy])
    }

    fn filter<'e>(
        &self,
        b: &Backprop<'e>,
        input: Value<'e>,
        like: Value<'e>,
        dy: Value<'e>,
    ) -> Value<'e> {
        if self.is_dilated(b) {
            return b.with_attrs("Conv2DBackpropFilterV2", [input, like, dy]);
        }
        b.with_attrs(self.by_filter, [input, shape_i32(like), dy])
    }

    fn of_forward<'e>(&self, b: &Backprop<'e>) -> Grads<'e> {
        let (input, filter, dy) = b.binary();
        vec![
            b.needs(0).then(|| self.input(b, input, filter, dy).into()),
            b.needs(1).then(|| self.filter(b, input, filter, dy).into()),
        ]
    }

    /// Of the op with arguments `sizes`, `filter` and `inner`, the gradient by the input.
    fn of_input<'e>(&self, b: &Backprop<'e>) -> Grads<'e> {
        let (filter, inner, dy) = (b.x(1), b.x(2), b.dy(0));
        vec![
            None,
            Some(self.filter(b, dy, filter, inner).into()),
            Some(b.with_attrs(self.forward, [dy, filter]).into()),
        ]
    }

    /// Of the op with arguments `input`, `sizes` and `inner`, the gradient by the filter.
    fn of_filter<'e>(&self, b: &Backprop<'e>) -> Grads<'e> {
        let (input, inner, dy) = (b.x(0), b.x(2), b.dy(0));
        let mut found = only(2, b.with_attrs(self.forward, [input, dy]));
        found[0] = Some(self.input(b, input, dy, inner).into());
        found
    }
}

pub(crate) fn conv2d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    CONV_2D.of_forward(b)
}

pub(crate) fn conv2d_input<'e>(b: &Backprop<'e>) -> Grads<'e> {
    CONV_2D.of_input(b)
}

pub(crate) fn conv2d_filter<'e>(b: &Backprop<'e>) -> Grads<'e> {
    CONV_2D.of_filter(b)
}

pub(crate) fn conv3d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    CONV_3D.of_forward(b)
}

pub(crate) fn conv3d_input<'e>(b: &Backprop<'e>) -> Grads<'e> {
    CONV_3D.of_input(b)
}

pub(crate) fn conv3d_filter<'e>(b: &Backprop<'e>) -> Grads<'e> {
    CONV_3D.of_filter(b)
}

pub(crate) fn depthwise<'e>(b: &Backprop<'e>) -> Grads<'e> {
    DEPTHWISE.of_forward(b)
}

pub(crate) fn depthwise_input<'e>(b: &Backprop<'e>) -> Grads<'e> {
    DEPTHWISE.of_input(b)
}

pub(crate) fn depthwise_filter<'e>(b: &Backprop<'e>) -> Grads<'e> {
    DEPTHWISE.of_filter(b)
}

pub(crate) fn dilation<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let by = |name: &str| Some(b.with_attrs(name, [b.x(0), b.x(1), b.dy(0)]).into());
    vec![by("Dilation2DBackpropInput"), by("Dilation2DBackpropFilter")]
}
