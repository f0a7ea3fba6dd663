package plan

import (
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// candidates are the layouts that a node's value may have.
func candidates(n *network.Network, index, features int) []packing.Layout {
	node := n.Nodes[index]
	if node.Public {
		return skewed(n, index, features)
	}
	found := []packing.Layout{packing.Flat(node.Size, features)}
	if node.Kind == network.Input {
		found = append(found, inputs(n, index, features)...)
	}
	if node.Image == nil {
		return found
	}
	widest := 1
	for _, other := range n.Nodes {
		if other.Image != nil {
			widest = max(widest, other.Image[2])
		}
	}
	gap := 1
	for side := pad(node.Image[2]); side <= pad(widest); side *= 2 {
		for _, fill := range []bool{false, true} {
			if gap == 1 && fill {
				continue
			}
			if layout, ok := packing.Grid(node.Image, side, gap, fill, features); ok {
				found = append(found, layout)
			}
		}
		gap *= 2
	}
	return found
}

// skewed are layouts in which dense layers find a node's elements nearer.
func skewed(n *network.Network, index, features int) []packing.Layout {
	var found []packing.Layout
	for _, reader := range n.Nodes {
		for _, expression := range reader.Arguments {
			for _, term := range expression.Terms {
				if layout, ok := packing.Skewed(n.Nodes[index].Size, features, pad(reader.Size)); ok && term.Node == index {
					found = append(found, layout)
				}
			}
		}
	}
	return found
}

// inputs are layouts that only a client can make, since it has the values in the clear.
func inputs(n *network.Network, index, features int) []packing.Layout {
	node := n.Nodes[index]
	found := skewed(n, index, features)
	for _, reader := range n.Nodes {
		for _, expression := range reader.Arguments {
			for _, term := range expression.Terms {
				if term.Node != index {
					continue
				}
				if node.Image != nil && reader.Image != nil {
					step := (node.Image[2] + reader.Image[2] - 1) / reader.Image[2]
					if step > 1 && step <= 4 {
						found = append(found, packing.Phases(node.Image, step, features))
					}
				}
			}
		}
	}
	return found
}

func pad(size int) int {
	power := 1
	for power < size {
		power *= 2
	}
	return power
}
