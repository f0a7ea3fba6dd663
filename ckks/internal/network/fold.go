package network

// WithBareSquares is the same network with the sign and offset of each square moved into the layers that read it, so that
// whoever squares ciphertexts needs to know no weight.
func (n *Network) WithBareSquares() *Network {
	made := &Network{Batch: n.Batch, Known: n.Known, Nodes: make([]Node, len(n.Nodes))}
	for index, node := range n.Nodes {
		arguments := make([]Expression, len(node.Arguments))
		for i, argument := range node.Arguments {
			arguments[i] = n.bare(argument)
		}
		node.Arguments, node.Sign, node.Offset = arguments, 1, 0
		made.Nodes[index] = node
	}
	return made
}

// bare is an expression of bare squares that equals one of the network's.
func (n *Network) bare(e Expression) Expression {
	if e.Bias == nil {
		return e
	}
	made := e
	made.Terms = nil
	made.Bias = append([]float64(nil), e.Bias...)
	for _, term := range e.Terms {
		node := n.Nodes[term.Node]
		if node.Kind != Polynomial || node.Degree != 2 {
			made.Terms = append(made.Terms, term)
			continue
		}
		for row := range made.Bias {
			for at := term.Matrix.Start[row]; at < term.Matrix.Start[row+1]; at++ {
				made.Bias[row] += term.Matrix.Value[at] * node.Offset
			}
		}
		sign := node.Sign
		made.Terms = append(made.Terms, Term{term.Node, term.Matrix.scaled(func(int) float64 { return sign })})
	}
	return made
}
