//! A picture of a graph in DOT, the language of Graphviz.

use super::Picture;
use super::nodes::colours;
use std::fmt::Write as _;

impl Picture {
    /// The graph in DOT, for Graphviz: `dot -Tsvg graph.dot > graph.svg`. A node has the colour of
    /// the PE that has computed it. One that was not computed is dashed, and a wanted one has a
    /// thick border.
    pub fn to_dot(&self) -> String {
        let (nodes, pes) = (self.nodes(), self.shares().len());
        let mut dot = format!(
            "digraph tasks {{\n  label=\"{} nodes on {pes} PEs\"; labelloc=t;\n  \
             fontname=\"sans-serif\";\n  node [shape=box, style=\"rounded,filled\", \
             fontname=\"sans-serif\", fontsize=11, margin=\"0.1,0.05\"];\n  edge \
             [color=\"#8c959f\", arrowsize=0.6];\n",
            nodes.len()
        );
        for (index, node) in nodes.iter().enumerate() {
            let (label, tooltip) = (escaped(&node.label), escaped(&node.details(index)));
            let mut line = format!("  n{index} [tooltip=\"{tooltip}\"");
            // Writing to a string cannot fail.
            let _ = match node.pe() {
                Some(pe) => {
                    let (stroke, fill) = colours(pe);
                    let who = format!("label=\"{label}\\n{index} · {pe}\"");
                    write!(line, ", {who}, color=\"{stroke}\", fillcolor=\"{fill}\"")
                }
                None => write!(
                    line,
                    ", label=\"{label}\\n{index}\", style=\"rounded,dashed\", color=\"#8c959f\", \
                     fontcolor=\"#59636e\""
                ),
            };
            if node.is_wanted {
                line.push_str(", penwidth=3");
            }
            dot.push_str(&line);
            dot.push_str("];\n");
        }
        for (index, node) in nodes.iter().enumerate() {
            for input in &node.inputs {
                let sent = match (nodes[*input as usize].pe(), node.pe()) {
                    (Some(made), Some(used)) if made != used => {
                        format!(" [color=\"{}\"]", colours(made).0)
                    }
                    _ => String::new(),
                };
                let _ = writeln!(dot, "  n{input} -> n{index}{sent};");
            }
        }
        dot.push_str("}\n");
        dot
    }
}

/// A text as it stands between quotation marks.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
