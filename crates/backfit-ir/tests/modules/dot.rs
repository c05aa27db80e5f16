//! The picture of a small program.

use backfit_ir::dot::dot;
use backfit_ir::{FuncId, Module};

const PROGRAM: &str = r#"
func @pair {
  input %0 x : f32[2] at "f.rs":1
  return a = %0
  return b = %0
}
func @"the \"main\" one" {
  input %0 x : f32[2] at "f.rs":2
  weight %1 w : f32[2] init constant(0.0) at "f.rs":3
  hyper %2 lr : f32[2] at "f.rs":4
  %3 = mul %0, %1 : f32[2] scope "net/fc1" at "f.rs":5
  %4 = constant splat(0.5) : f32[2] scope "net" at "f.rs":6
  %5 = add %3, %4 : f32[2] scope "net/fc1" at "f.rs":7
  %6, %7 = call @pair %5 : f32[2], f32[2] scope "net/fc2" at "dir\\f.rs":8
  %8 = mul %7, %2 : f32[2] at "f.rs":9
  return y = %6
  return w = %8 aliases w
}
"#;

const PICTURE: &str = r#"digraph "the \"main\" one" {
  node [shape=box, fontname="monospace"];
  p0 [label="x\nf32[2]", shape=invhouse];
  p1 [label="w\nf32[2]", shape=cylinder];
  p2 [label="lr\nf32[2]", shape=diamond];
  n4 [label="mul\nf32[2]\nf.rs:9"];
  subgraph cluster_0 { label="net"; color=gray;
    n1 [label="constant 0.5\nf32[2]\nf.rs:6"];
    subgraph cluster_1 { label="fc1"; color=gray;
      n0 [label="mul\nf32[2]\nf.rs:5"];
      n2 [label="add\nf32[2]\nf.rs:7"];
    }
    subgraph cluster_2 { label="fc2"; color=gray;
      n3 [label="call @pair\nf32[2], f32[2]\ndir\\f.rs:8", style=rounded];
    }
  }
  p0 -> n0;
  p1 -> n0;
  n0 -> n2;
  n1 -> n2;
  n2 -> n3;
  n3 -> n4 [taillabel="1"];
  p2 -> n4;
  r0 [label="y", shape=oval, style=bold];
  n3 -> r0 [taillabel="0"];
  r1 [label="w", shape=oval, style=bold];
  n4 -> r1;
  r1 -> p1 [style=dashed, constraint=false, label="writes"];
}
"#;

#[test]
fn the_picture_is_as_expected() {
    let picture = dot(&Module::parse(PROGRAM).unwrap(), FuncId(1));
    assert_eq!(picture, PICTURE, "{picture}");
}
