package plan

import "privet/ckks/internal/network"

// levels are, for each node, the level of its arguments once they are computed and of the node itself, counted down
// from 0 at the inputs; and the depth of the whole network.
func levels(n *network.Network) (argument, made []int, deepest int) {
	argument, made = make([]int, len(n.Nodes)), make([]int, len(n.Nodes))
	for i, node := range n.Nodes {
		lowest := 0
		for _, expression := range node.Arguments {
			for _, term := range expression.Terms {
				lowest = min(lowest, made[term.Node])
			}
		}
		for _, expression := range node.Arguments {
			if !expression.Trivial() {
				lowest = min(lowest, entering(expression, made)-1)
			}
		}
		argument[i], made[i] = lowest, lowest
		switch node.Kind {
		case network.Polynomial:
			made[i] -= depth(node.Degree)
		case network.Product:
			made[i]--
		}
		deepest = max(deepest, -made[i])
	}
	return argument, made, deepest
}

// entering is the level at which an expression's terms are multiplied.
func entering(e network.Expression, made []int) int {
	level := 0
	for _, term := range e.Terms {
		level = min(level, made[term.Node])
	}
	return level
}
