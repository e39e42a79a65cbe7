//! Expansions of the macros, as text.

use crate::{expand, nest, trace_type};
use expect_test::{Expect, expect};
use proc_macro2::TokenStream;
use quote::quote;

fn check(code: TokenStream, expected: Expect) {
    let file = syn::parse2(code).expect("the code is that of a file");
    // Here nobody knows the tracer, so that it is looked for in the facade.
    let text = prettyplease::unparse(&file).replace("::ferroflow::tracer::macros::", "m::");
    expected.assert_eq(&text);
}

#[test]
fn a_free_function() {
    let options = quote!(input_signature = [spec(f32, [None, 5]), host]);
    let function = quote! {
        /// A layer.
        #[expect(clippy::some_lint, reason = "of the body")]
        pub fn dense(x: &Tensor, mut act: Act, #[default("plain")] name: &str) -> Result<Tensor> {
            x.act(act)
        }
    };
    check(
        expand::expand(options, function),
        expect![[r#"
            /// A layer.
            #[allow(clippy::some_lint, reason = "of the body")]
            #[allow(trivial_bounds, reason = "whether types are nests is told once")]
            #[track_caller]
            pub fn dense(x: &Tensor, act: Act, name: &str) -> Result<Tensor>
            where
                Act: m::Nest,
            {
                dense::function()
                    .polymorphic()
                    .call_fallible(
                        (
                            ::core::clone::Clone::clone(x),
                            act,
                            ::std::borrow::ToOwned::to_owned(name),
                        ),
                        &|(x, act, name)| dense::__traced(&x, act, &name),
                    )
            }
            /// The traced function [`dense`](fn@dense).
            pub struct dense {}
            #[allow(deprecated, reason = "the function itself may be")]
            #[allow(trivial_bounds, reason = "whether types are nests is told once")]
            impl dense
            where
                Act: m::Nest,
            {
                #[allow(clippy::too_many_arguments, reason = "said of the function that is called")]
                #[allow(clippy::some_lint, reason = "of the body")]
                fn __traced(x: &Tensor, mut act: Act, name: &str) -> Result<Tensor> {
                    x.act(act)
                }
                /// The function and its traces.
                pub fn function() -> &'static m::Function<
                    (Tensor, Act, ::std::string::String),
                    Tensor,
                > {
                    static FUNCTION: m::FunctionSlot = m::FunctionSlot::new();
                    let _ = (dense, Self::signatures, Self::tracing_count);
                    let _ = |args: (Tensor, Act, ::std::string::String)| Self::call(args);
                    let _ = |args: (Tensor, Act, ::std::string::String)| Self::concrete(args);
                    FUNCTION
                        .get_or_init(|| m::function_with(
                            m::FunctionOptions {
                                name: ::std::convert::Into::into("dense"),
                                parameters: ::std::vec![
                                    m::ParameterSpec::new("x"),
                                    m::ParameterSpec::new("act"),
                                    m::ParameterSpec::new("name")
                                    .or(m::Nest::to_value(& < _ as
                                    m::IntoArg < ::std::string::String >>
                                    ::into_arg("plain")))
                                ],
                                input_signature: ::core::option::Option::Some(
                                    ::std::vec![
                                        m::ArgSpec::Type(m::TraceType::tensor(m::DType::F32,
                                        m::PartialShape::ranked([::core::option::Option::None,
                                        ::core::option::Option::Some(5usize)]))),
                                        m::ArgSpec::HostValue
                                    ],
                                ),
                                ..::core::default::Default::default()
                            },
                            |x: Tensor, act: Act, name: ::std::string::String| {
                                Self::__traced(&x, act, &name)
                                    .map_err(m::Error::host)
                            },
                        ))
                }
                /// Calls the function with arguments by value or reference.
                ///
                /// # Errors
                ///
                /// Those of the function.
                #[track_caller]
                pub fn call(
                    args: impl m::IntoArgs<
                        (Tensor, Act, ::std::string::String),
                    >,
                ) -> m::Result<Tensor> {
                    Self::function().call(args)
                }
                /// The trace for arguments like these, made if there is none; nothing runs.
                ///
                /// # Errors
                ///
                /// As a call.
                pub fn concrete(
                    args: impl m::IntoArgs<
                        (Tensor, Act, ::std::string::String),
                    >,
                ) -> m::Result<
                    m::ConcreteFunction,
                > {
                    Self::function().concrete(args)
                }
                /// Descriptions of the inputs and outputs of the traces.
                pub fn signatures() -> ::std::string::String {
                    Self::function().signatures()
                }
                /// Number of times that the code has run to be traced.
                pub fn tracing_count() -> u64 {
                    Self::function().tracing_count()
                }
            }
        "#]],
    );
}

#[test]
fn a_method() {
    let method = quote! {
        fn infer(&self, x: Option<&Tensor>) -> Result<Tensor, Mine> { self.act(x) }
    };
    let method = expand::expand(quote!(reduce_retracing), method);
    check(
        quote!(impl Net { #method }),
        expect![[r#"
            impl Net {
                #[track_caller]
                fn infer(&self, x: Option<&Tensor>) -> Result<Tensor, Mine> {
                    self.infer_function()
                        .call_fallible(
                            (
                                ::core::option::Option::map(
                                    x,
                                    |lent: &_| ::core::clone::Clone::clone(lent),
                                ),
                            ),
                            &|(x,)| self.__traced_infer(::core::option::Option::as_ref(&x)),
                        )
                }
                #[allow(clippy::too_many_arguments, reason = "said of the function that is called")]
                #[doc(hidden)]
                fn __traced_infer(&self, x: Option<&Tensor>) -> Result<Tensor, Mine> {
                    self.act(x)
                }
                /// The traces of [`infer`](Self::infer) on this object.
                fn infer_function(
                    &self,
                ) -> ::std::sync::Arc<m::PolymorphicFunction> {
                    static METHOD: m::Method = m::Method::new(
                        "infer",
                    );
                    let _ = |types: ::std::vec::Vec<m::TraceType>| {
                        self.infer_concrete(types)
                    };
                    m::HasFunctions::functions(self)
                        .of(
                            &METHOD,
                            || m::PolymorphicFunction::new(
                                m::FunctionOptions {
                                    name: ::std::convert::Into::into("infer"),
                                    parameters: ::std::vec![
                                        m::ParameterSpec::new("x")
                                    ],
                                    reduce_retracing: true,
                                    ..::core::default::Default::default()
                                },
                                1usize,
                            ),
                        )
                }
                /// The trace of [`infer`](Self::infer) on this object for arguments of these types, made if there is none; nothing runs.
                ///
                /// # Errors
                ///
                /// As a call.
                #[allow(deprecated, reason = "the method itself may be")]
                fn infer_concrete(
                    &self,
                    types: impl ::core::iter::IntoIterator<
                        Item = impl ::core::convert::Into<m::TraceType>,
                    >,
                ) -> m::Result<
                    m::ConcreteFunction,
                > {
                    let _ = Self::infer;
                    let types = types.into_iter().map(::core::convert::Into::into).collect();
                    self.infer_function()
                        .concrete(
                            types,
                            &|(x,): (Option<Tensor>,)| {
                                self.__traced_infer(::core::option::Option::as_ref(&x))
                                    .map_err(m::Error::host)
                            },
                        )
                }
            }
        "#]],
    );
}

/// Checks the code of a body, without the function around it.
fn check_body(body: TokenStream, expected: Expect) {
    let body = proc_macro2::Group::new(proc_macro2::Delimiter::Brace, body);
    let output = syn::parse_quote!(-> Result<Tensor>);
    let code = crate::autograph::rewritten(&body, &output).expect("there is something to rewrite");
    let code = code.code;
    check(quote!(fn f() #code), expected);
}

#[test]
fn control_flow_of_rust_is_left_as_it_is() {
    let body = quote!({
        let mut n = 0;
        for i in 0..3 {
            if i > least && n < most || matches!(x, None) {
                continue;
            }
            while let Some(y) = x.next() {
                n += 1;
            }
            assert!(n != 7);
            n = least + [0; 2 * most + N].map(|x| x * 2 + 1)[0];
        }
        Ok(x)
    });
    let proc_macro2::TokenTree::Group(body) = body.into_iter().next().expect("a block") else {
        panic!("a block is a group")
    };
    assert!(crate::autograph::rewritten(&body, &syn::ReturnType::Default).is_none());
}

#[test]
fn operators_after_operators() {
    check_body(
        quote!(-(x * 2.0 - 1) + 2 * 3),
        expect![[r#"
            fn f() {
                #[allow(unused_imports, reason = "which of them is asked for is not known")]
                use m::flow::{AnyCompared as _, AnyOperand as _};
                m::flow::NestedOperand(
                        -m::flow::NestedOperand(
                                m::flow::NestedOperand(x * 2.0).value()?
                                    - 1,
                            )
                            .value()?,
                    )
                    .value()? + 2 * 3
            }
        "#]],
    );
}

#[test]
fn comparisons_with_values() {
    check_body(
        quote!(if x < 10.0 && n == m { x.square() } else { x }),
        expect![[r#"
        fn f() {
            #[allow(unused_imports, reason = "which of them is asked for is not known")]
            use m::flow::{AnyCompared as _, AnyOperand as _};
            if x
                < ({
                    if false {
                        m::flow::comparable(
                            m::flow::Compared(&x).kind(),
                        );
                    }
                    10.0
                }) && n == m
            {
                x.square()
            } else {
                x
            }
        }
    "#]],
    );
}

#[test]
fn an_if() {
    check_body(
        quote!(if x.less(y)? { total = x; } Ok(total)),
        expect![[r#"
            fn f() {
                let __frame = m::flow::RegionStack::<
                    Result<Tensor>,
                >::new();
                __frame
                    .close({
                        {
                            let mut __if_1 = m::flow::if_(x.less(y)?);
                            if let ::core::option::Option::Some(__failed_1) = m::flow::If::error(
                                &mut __if_1,
                            ) {
                                return m::flow::fail(&__if_1, __failed_1);
                            }
                            let mut __slot_1 = m::flow::ValueSlot::new();
                            '__if_1: loop {
                                if false {
                                    m::flow::never();
                                    break '__if_1 __slot_1.take();
                                }
                                if m::flow::live(&__if_1) {
                                    m::flow::gate(&__if_1);
                                    match {
                                        let __state_1 = &mut [
                                            m::flow::carry(
                                                &__if_1,
                                                "total",
                                                &mut total,
                                            ),
                                        ];
                                        m::flow::If::begin(
                                            &mut __if_1,
                                            __frame.flows(),
                                            __state_1,
                                        )
                                    } {
                                        ::core::result::Result::Ok(__value) => __value,
                                        ::core::result::Result::Err(__error) => {
                                            return m::flow::fail(
                                                &__if_1,
                                                __error,
                                            );
                                        }
                                    }
                                }
                                '__branch_1: {
                                    __slot_1
                                        .put(
                                            if m::flow::If::test(&__if_1) {
                                                total = x;
                                            },
                                        );
                                }
                                if m::flow::live(&__if_1) {
                                    m::flow::gate(&__if_1);
                                    match match {
                                        let __state_1 = &mut [
                                            m::flow::carry(
                                                &__if_1,
                                                "total",
                                                &mut total,
                                            ),
                                        ];
                                        m::flow::Ends::end(
                                            &mut __if_1,
                                            __frame.flows(),
                                            __state_1,
                                            &mut __slot_1,
                                        )
                                    } {
                                        ::core::result::Result::Ok(__value) => __value,
                                        ::core::result::Result::Err(__error) => {
                                            return m::flow::fail(
                                                &__if_1,
                                                __error,
                                            );
                                        }
                                    } {
                                        m::flow::Next::Again => {
                                            continue '__if_1;
                                        }
                                        m::flow::Next::Value
                                        | m::flow::Next::Guard(_)
                                        | m::flow::Next::Leave(_) => {}
                                    }
                                }
                                break '__if_1 __slot_1.take();
                            }
                        }
                        Ok(total)
                    })
            }
        "#]],
    );
}

#[test]
fn a_while_that_returns() {
    check_body(
        quote!(while x.less(y)? { return Ok(x); } Ok(y)),
        expect![[r#"
            fn f() {
                let __frame = m::flow::RegionStack::<
                    Result<Tensor>,
                >::new();
                __frame
                    .close({
                        {
                            let mut __loop_1 = m::flow::AutographLoop::new(
                                m::flow::Repeats::While,
                                true,
                            );
                            '__loop_1: loop {
                                __loop_1.before_condition();
                                let mut __kind_1 = m::flow::while_(
                                    x.less(y)?,
                                    &mut __loop_1,
                                );
                                if let ::core::option::Option::Some(__failed_1) = m::flow::While::error(
                                    &mut __kind_1,
                                ) {
                                    return m::flow::fail(
                                        &__kind_1,
                                        __failed_1,
                                    );
                                }
                                if m::flow::While::ends(&__kind_1) {
                                    break '__loop_1;
                                }
                                if m::flow::live(&__kind_1) {
                                    m::flow::gate(&__kind_1);
                                    if match m::flow::While::enter(
                                        &__kind_1,
                                        &mut __loop_1,
                                        __frame.flows(),
                                        &mut [],
                                    ) {
                                        ::core::result::Result::Ok(__value) => __value,
                                        ::core::result::Result::Err(__error) => {
                                            return m::flow::fail(
                                                &__kind_1,
                                                __error,
                                            );
                                        }
                                    } {
                                        continue '__loop_1;
                                    }
                                }
                                '__body_1: {
                                    let mut __held_0_1 = ::core::option::Option::None;
                                    if m::flow::live(&__kind_1) {
                                        m::flow::gate(&__kind_1);
                                        __held_0_1 = ::core::option::Option::Some(&x);
                                    }
                                    {
                                        {
                                            let __returned = __frame
                                                .typed(
                                                    Ok(
                                                        (if m::flow::staged(&__kind_1) {
                                                            m::flow::gate(&__kind_1);
                                                            let __copy = m::flow::copy(
                                                                &__kind_1,
                                                                &x,
                                                            );
                                                            __copy
                                                        } else {
                                                            m::flow::host_gate(&__kind_1);
                                                            x
                                                        }),
                                                    ),
                                                );
                                            if m::flow::live(&__kind_1) {
                                                m::flow::gate(&__kind_1);
                                                if let ::core::option::Option::Some(__failure) = __frame
                                                    .keep(&__kind_1, __returned)
                                                {
                                                    return __failure;
                                                }
                                                break '__body_1;
                                            }
                                            return __frame.close(__returned);
                                        };
                                    }
                                    let _ = &__held_0_1;
                                }
                                if m::flow::live(&__kind_1) {
                                    m::flow::gate(&__kind_1);
                                    match match __loop_1.finish(__frame.flows(), &mut [], 2u32, 3u32)
                                    {
                                        ::core::result::Result::Ok(__value) => __value,
                                        ::core::result::Result::Err(__error) => {
                                            return m::flow::fail(
                                                &__kind_1,
                                                __error,
                                            );
                                        }
                                    } {
                                        m::flow::Next::Again => {
                                            continue '__loop_1;
                                        }
                                        m::flow::Next::Value => {}
                                        m::flow::Next::Guard(__way) => {
                                            match __frame.flows().guard(__way, &mut []) {
                                                ::core::result::Result::Ok(__value) => __value,
                                                ::core::result::Result::Err(__error) => {
                                                    return m::flow::fail(
                                                        &__kind_1,
                                                        __error,
                                                    );
                                                }
                                            }
                                        }
                                        m::flow::Next::Leave(__way) => {
                                            return __frame.returned(__way);
                                        }
                                    }
                                    break '__loop_1;
                                }
                            }
                        }
                        Ok(y)
                    })
            }
        "#]],
    );
}

#[test]
fn nests() {
    let input = syn::parse_quote! {
        enum Act<T> {
            Relu,
            Leaky { slope: T, r#type: f32 },
        }
    };
    check(
        nest::expand(&input).expect("it is a nest"),
        expect![[r##"
            #[automatically_derived]
            impl<T> m::Nest for Act<T>
            where
                T: m::Nest,
            {
                fn to_value(&self) -> m::NestedValue {
                    match self {
                        Self::Relu {} => m::structs::value("Act::Relu", []),
                        Self::Leaky { slope: field_0, r#type: field_1 } => {
                            m::structs::value(
                                "Act::Leaky",
                                [
                                    (
                                        "slope",
                                        <T as m::Nest>::to_value(field_0),
                                    ),
                                    (
                                        "type",
                                        <f32 as m::Nest>::to_value(field_1),
                                    ),
                                ],
                            )
                        }
                    }
                }
                fn from_value(
                    value: m::NestedValue,
                ) -> m::Result<Self> {
                    let mut fields = m::structs::StructFields::of(
                        value,
                        "Act",
                    )?;
                    if fields.are("Act::Relu", &[]) {
                        return ::core::result::Result::Ok(Self::Relu {});
                    }
                    if fields.are("Act::Leaky", &["slope", "type"]) {
                        return ::core::result::Result::Ok(Self::Leaky {
                            slope: <T as m::Nest>::from_value(
                                fields.take(),
                            )?,
                            r#type: <f32 as m::Nest>::from_value(
                                fields.take(),
                            )?,
                        });
                    }
                    ::core::result::Result::Err(fields.are_not("Act"))
                }
                fn has_type(
                    &self,
                    ty: &m::TraceType,
                    aliases: &mut m::Aliases,
                ) -> bool {
                    match self {
                        Self::Relu {} => {
                            (|| -> ::core::option::Option<bool> {
                                let mut types = m::structs::types(
                                        ty,
                                        "Act::Relu",
                                        0usize,
                                    )?
                                    .iter();
                                ::core::option::Option::Some(types.next().is_none())
                            })()
                                .unwrap_or(false)
                        }
                        Self::Leaky { slope: field_0, r#type: field_1 } => {
                            (|| -> ::core::option::Option<bool> {
                                let mut types = m::structs::types(
                                        ty,
                                        "Act::Leaky",
                                        2usize,
                                    )?
                                    .iter();
                                ::core::option::Option::Some(
                                    <T as m::Nest>::has_type(
                                        field_0,
                                        &types.next()?.1,
                                        aliases,
                                    )
                                        && <f32 as m::Nest>::has_type(
                                            field_1,
                                            &types.next()?.1,
                                            aliases,
                                        ) && types.next().is_none(),
                                )
                            })()
                                .unwrap_or(false)
                        }
                    }
                }
                fn leaves(
                    &self,
                    aliases: &mut m::Aliases,
                    leaves: &mut m::TensorLeaves,
                ) {
                    match self {
                        Self::Relu {} => {}
                        Self::Leaky { slope: field_0, r#type: field_1 } => {
                            <T as m::Nest>::leaves(
                                field_0,
                                aliases,
                                leaves,
                            );
                            <f32 as m::Nest>::leaves(
                                field_1,
                                aliases,
                                leaves,
                            );
                        }
                    }
                }
                fn from_leaves(
                    ty: &m::TraceType,
                    tensors: &mut dyn ::core::iter::Iterator<
                        Item = m::Tensor,
                    >,
                ) -> m::Result<Self> {
                    let mut fields = m::structs::FieldTypes::of(
                        ty,
                        "Act",
                    )?;
                    if fields.are("Act::Relu", &[]) {
                        return ::core::result::Result::Ok(Self::Relu {});
                    }
                    if fields.are("Act::Leaky", &["slope", "type"]) {
                        return ::core::result::Result::Ok(Self::Leaky {
                            slope: <T as m::Nest>::from_leaves(
                                fields.take(),
                                tensors,
                            )?,
                            r#type: <f32 as m::Nest>::from_leaves(
                                fields.take(),
                                tensors,
                            )?,
                        });
                    }
                    ::core::result::Result::Err(fields.are_not("Act"))
                }
            }
            #[automatically_derived]
            impl<T> m::flow::Carry for Act<T>
            where
                T: m::Nest,
            {}
        "##]],
    );
}

#[test]
fn trace_types() {
    let input = syn::parse_quote! {
        #[trace(by_value)]
        struct Fruit<T>(T);
    };
    check(
        trace_type::expand(&input).expect("it is a type"),
        expect![[r#"
        #[automatically_derived]
        impl<T> m::Nest for Fruit<T>
        where
            Fruit<T>: ::core::clone::Clone + ::core::cmp::PartialEq + Send + Sync + 'static,
        {
            fn to_value(&self) -> m::NestedValue {
                let object = ::std::sync::Arc::new(<Self as ::core::clone::Clone>::clone(self));
                m::NestedValue::Custom(
                    m::custom::by_kept_value(&object),
                )
            }
            fn from_value(
                value: m::NestedValue,
            ) -> m::Result<Self> {
                let object = m::custom::object::<Self>(&value)?;
                ::core::result::Result::Ok(<Self as ::core::clone::Clone>::clone(&object))
            }
            fn has_type(
                &self,
                ty: &m::TraceType,
                _: &mut m::Aliases,
            ) -> bool {
                m::custom::has_type(self, ty)
            }
            fn leaves(
                &self,
                _: &mut m::Aliases,
                _: &mut m::TensorLeaves,
            ) {}
        }
    "#]],
    );
}

#[test]
fn a_method_that_changes_its_object() {
    let method = quote! {
        fn add(&mut self, x: &Tensor) -> Result<Tensor> {
            self.sum = (&self.sum + x)?;
            Ok(self.sum.clone())
        }
    };
    let method = expand::expand(quote!(), method);
    check(
        quote!(impl Sum { #method }),
        expect![[r#"
            impl Sum {
                #[allow(trivial_bounds, reason = "whether types are nests is told once")]
                #[track_caller]
                fn add(&mut self, x: &Tensor) -> Result<Tensor>
                where
                    Self: m::Nest + ::core::clone::Clone + 'static,
                {
                    let called = Self::add_function()
                        .polymorphic()
                        .call_fallible(
                            (::core::clone::Clone::clone(&*self), ::core::clone::Clone::clone(x)),
                            &|(__object, x): (Self, Tensor)| {
                                let mut __object = __object;
                                __object.__traced_add(&x)
                            },
                        );
                    m::changing::apply(self, called)
                }
                #[allow(clippy::too_many_arguments, reason = "said of the function that is called")]
                #[allow(trivial_bounds, reason = "whether types are nests is told once")]
                #[doc(hidden)]
                fn __traced_add(
                    &mut self,
                    x: &Tensor,
                ) -> Result<(Tensor, m::NestedValue)>
                where
                    Self: m::Nest + ::core::clone::Clone + 'static,
                {
                    let __before = m::changing::before(&*self);
                    self.sum = (&self.sum + x)?;
                    m::changing::with_state(
                        Ok(self.sum.clone()),
                        "add",
                        &__before,
                        &*self,
                    )
                }
                /// The traced function of [`add`](Self::add), for all objects.
                #[allow(deprecated, reason = "the method itself may be")]
                #[allow(trivial_bounds, reason = "whether types are nests is told once")]
                fn add_function() -> &'static m::Function<
                    (Self, Tensor),
                    (Tensor, m::NestedValue),
                >
                where
                    Self: m::Nest + ::core::clone::Clone + 'static,
                {
                    static METHOD: m::Slots = m::Slots::new();
                    let _ = Self::add;
                    METHOD
                        .get_or_init::<
                            Self,
                            _,
                        >(|| m::function_with(
                            m::FunctionOptions {
                                name: ::std::convert::Into::into("add"),
                                parameters: ::std::vec![
                                    m::ParameterSpec::new("self"),
                                    m::ParameterSpec::new("x")
                                ],
                                ..::core::default::Default::default()
                            },
                            |__object: Self, x: Tensor| {
                                ({
                                    let mut __object = __object;
                                    __object.__traced_add(&x)
                                })
                                    .map_err(m::Error::host)
                            },
                        ))
                }
            }
        "#]],
    );
}
