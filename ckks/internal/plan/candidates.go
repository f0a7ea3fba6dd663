package plan

import (
	"slices"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// candidates are the layouts that a node's value may have. Those of results have a free place in each ciphertext, which tells whoever
// decrypts whether it has wrapped around.
func (s *search) candidates(index int) []packing.Layout {
	node := s.network.Nodes[index]
	if node.Public {
		return skewed(s.network, index, s.features)
	}
	if node.Kind != network.Output {
		return append([]packing.Layout{packing.Flat(node.Size, s.features)}, s.others(index)...)
	}
	found := slices.DeleteFunc(s.others(index), func(layout packing.Layout) bool {
		return slices.ContainsFunc(layout.Free(), func(free []int) bool { return len(free) == 0 })
	})
	if flat, ok := packing.Guarded(node.Size, s.features); ok {
		found = append(found, flat)
	}
	return found
}

// others are the layouts beside a flat one. The noise of a skewed value's repetitions all adds up: where results
// are flooded, an encrypted input is not skewed, so that less has to be covered.
func (s *search) others(index int) []packing.Layout {
	n, features := s.network, s.features
	node := n.Nodes[index]
	var found []packing.Layout
	if node.Kind == network.Input {
		found = append(found, inputs(n, index, features)...)
		if n.Known || !s.refresh.Flooded {
			found = append(found, skewed(n, index, features)...)
		}
	}
	if node.Image == nil {
		return found
	}
	found = append(found, tight(n, index, features)...)
	widest := 1
	for _, other := range n.Nodes {
		if other.Image != nil {
			widest = max(widest, other.Image[2])
		}
	}
	gap := 1
	for side := packing.PowerOfTwo(node.Image[2]); side <= packing.PowerOfTwo(widest); side *= 2 {
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
		period := packing.PowerOfTwo(reader.Size)
		if guarded, ok := packing.Guarded(reader.Size, features); ok && reader.Kind == network.Output {
			period = guarded.Period
		}
		for _, expression := range reader.Arguments {
			for _, term := range expression.Terms {
				if layout, ok := packing.Skewed(n.Nodes[index].Size, features, period); ok && term.Node == index {
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
	var found []packing.Layout
	for _, reader := range n.Nodes {
		for _, expression := range reader.Arguments {
			for _, term := range expression.Terms {
				if term.Node != index {
					continue
				}
				if node.Image != nil && reader.Image != nil {
					step := steps(node.Image, reader.Image)
					if step > 1 && step <= 4 {
						found = append(found, packing.Phases(node.Image, step, features))
						if made, ok := packing.NewTight(node.Image, reader.Image, step, features); ok {
							found = append(found, made.Phases(node.Image))
						}
					}
				}
			}
		}
	}
	return found
}

// tight are layouts for what is read from an input by a strided convolution.
func tight(n *network.Network, index, features int) []packing.Layout {
	var found []packing.Layout
	node := n.Nodes[index]
	for _, expression := range node.Arguments {
		for _, term := range expression.Terms {
			source := n.Nodes[term.Node]
			if source.Kind != network.Input || source.Image == nil {
				continue
			}
			if made, ok := packing.NewTight(source.Image, node.Image, steps(source.Image, node.Image), features); ok {
				found = append(found, made.Channels(node.Image))
			}
		}
	}
	return found
}

// steps is about the stride of a convolution between two images, whose edges may cost it a few columns.
func steps(from, to []int) int { return (2*from[2] + to[2]) / (2 * to[2]) }
