package network

// Rearranged is the same network with a copy of each value that dense matrices read, if it has up to `most` elements: a
// public node, which can have a layout of its own. A level more, and a matrix takes fewer diagonals.
//
// Every party finds the same nodes, since the places of a matrix's entries are known to all.
func (n *Network) Rearranged(most int) *Network {
	made := &Network{Batch: n.Batch, Known: n.Known}
	moved, copies := make([]int, len(n.Nodes)), make([]int, len(n.Nodes))
	for index, node := range n.Nodes {
		arguments := make([]Expression, len(node.Arguments))
		for i, argument := range node.Arguments {
			arguments[i] = argument
			arguments[i].Terms = nil
			for _, term := range argument.Terms {
				reads := moved[term.Node]
				if !argument.Trivial() && term.Matrix.dense() && copies[term.Node] >= 0 {
					reads = copies[term.Node]
				}
				arguments[i].Terms = append(arguments[i].Terms, Term{reads, term.Matrix})
			}
		}
		node.Arguments = arguments
		moved[index], copies[index] = len(made.Nodes), -1
		made.Nodes = append(made.Nodes, node)
		if node.Kind != Input && node.Kind != Output && node.Size <= most && n.readDensely(index) {
			copies[index] = len(made.Nodes)
			made.Nodes = append(made.Nodes, made.copyOf(moved[index]))
		}
	}
	return made
}

func (n *Network) copyOf(index int) Node {
	node := n.Nodes[index]
	expression := of(index, node.Size, nil, true)
	expression.Rescaled, expression.Bias = true, nil
	return Node{Kind: Linear, Name: node.Name + " (rearranged)", Size: node.Size, Public: true, Arguments: []Expression{expression}}
}

// readDensely tells whether a dense matrix reads a node.
func (n *Network) readDensely(index int) bool {
	for _, node := range n.Nodes[index+1:] {
		for _, argument := range node.Arguments {
			for _, term := range argument.Terms {
				if term.Node == index && !argument.Trivial() && term.Matrix.dense() {
					return true
				}
			}
		}
	}
	return false
}

// dense tells whether at least half of a matrix's places have entries.
func (m *Matrix) dense() bool { return m.Rows > 1 && 2*m.Entries() >= m.Rows*m.Columns }
