//! A picture of a graph in DOT, the language of Graphviz.

use super::Trace;
use super::picture::{PictureError, colours, duration, labels};
use std::fmt::Write as _;

impl Trace {
    /// The graph in DOT, for Graphviz: `dot -Tsvg graph.dot > graph.svg`. A node has the colour of
    /// the PE that has computed it. One that was not computed is dashed, and a wanted one has a
    /// double border.
    ///
    /// # Errors
    ///
    /// The graph was built [in blocks](crate::dag::Dag::blocks).
    pub fn to_dot(&self) -> Result<String, PictureError> {
        let graph = self.graph()?;
        let labels = labels(&graph.block);
        let nodes = self.nodes(graph, &labels);
        let (pes, took) = (self.shares().len(), duration(self.took_ns()));
        let mut dot = format!(
            "digraph tasks {{\n  label=\"{} nodes on {pes} PEs in {took}\"; labelloc=t;\n  \
             fontname=\"sans-serif\";\n  node [shape=box, style=\"rounded,filled\", \
             fontname=\"sans-serif\", fontsize=11, margin=\"0.1,0.05\"];\n  edge \
             [color=\"#8c959f\", arrowsize=0.6];\n",
            nodes.len()
        );
        for (index, node) in (0..).zip(&nodes) {
            let (label, tooltip) = (escaped(node.label), escaped(&node.details(index)));
            let mut line = format!("  n{index} [tooltip=\"{tooltip}\"");
            // Writing to a string cannot fail.
            let _ = match node.ran {
                Some(span) => {
                    let (stroke, fill) = colours(span.pe.number());
                    let who = format!("label=\"{label}\\n{index} · {}\"", span.pe);
                    write!(line, ", {who}, color=\"{stroke}\", fillcolor=\"{fill}\"")
                }
                None => write!(
                    line,
                    ", label=\"{label}\\n{index}\", style=\"rounded,dashed\", color=\"#8c959f\", \
                     fontcolor=\"#59636e\""
                ),
            };
            if node.is_wanted {
                line.push_str(", peripheries=2");
            }
            dot.push_str(&line);
            dot.push_str("];\n");
        }
        for (index, node) in nodes.iter().enumerate() {
            for input in &node.inputs {
                let sent = match (nodes[*input as usize].ran, node.ran) {
                    (Some(made), Some(used)) if made.pe != used.pe => {
                        format!(" [color=\"{}\"]", colours(made.pe.number()).0)
                    }
                    _ => String::new(),
                };
                let _ = writeln!(dot, "  n{input} -> n{index}{sent};");
            }
        }
        dot.push_str("}\n");
        Ok(dot)
    }
}

/// A text as it stands between quotation marks.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
