package network

import "slices"

// Term is a matrix times the values of a node.
type Term struct {
	Node   int
	Matrix *Matrix
}

// Expression is an affine function of nodes: the sum of its terms plus a bias. Bias is nil where it is not known.
//
// Image is the shape [channels, height, width] that its elements had when they last were an image, or nil; a layout of
// the elements in slots follows it.
type Expression struct {
	Terms []Term
	Bias  []float64
	Size  int
	Image []int
	// Rescaled tells that the expression is not just a node even if it looks like one: it has another scale or a private
	// factor.
	Rescaled bool
}

// of is the expression that stands for a node itself.
func of(node, size int, image []int, valued bool) Expression {
	made := Expression{Terms: []Term{{node, identity(size, valued)}}, Size: size, Image: image}
	if valued {
		made.Bias = make([]float64, size)
	}
	return made
}

// Trivial tells whether the expression is just a node, as it is.
func (e Expression) Trivial() bool {
	return !e.Rescaled && len(e.Terms) == 1 && e.Terms[0].Matrix.isPlace()
}

// apply is matrix * e + bias.
func (e Expression) apply(matrix *Matrix, bias []float64, image []int) Expression {
	made := Expression{Size: matrix.Rows, Image: image}
	for _, term := range e.Terms {
		made.Terms = append(made.Terms, Term{term.Node, matrix.times(term.Matrix)})
	}
	if e.Bias != nil {
		made.Bias = make([]float64, matrix.Rows)
		for row := range matrix.Rows {
			for at := matrix.Start[row]; at < matrix.Start[row+1]; at++ {
				made.Bias[row] += matrix.Value[at] * e.Bias[matrix.Column[at]]
			}
			if bias != nil {
				made.Bias[row] += bias[row]
			}
		}
	}
	return made
}

// scaled is e with each element times a factor.
func (e Expression) scaled(factor func(element int) float64) Expression {
	made := Expression{Size: e.Size, Image: e.Image, Rescaled: true}
	for _, term := range e.Terms {
		made.Terms = append(made.Terms, Term{term.Node, term.Matrix.scaled(factor)})
	}
	if e.Bias != nil {
		made.Bias = make([]float64, e.Size)
		for i := range made.Bias {
			made.Bias[i] = e.Bias[i] * factor(i)
		}
	}
	return made
}

// times is e times a private number.
func (e Expression) times(factor float64) Expression {
	return e.scaled(func(int) float64 { return factor })
}

// shifted is e plus a constant for each element.
func (e Expression) shifted(by func(element int) float64) Expression {
	made := e
	made.Rescaled = true
	made.Bias = slices.Clone(e.Bias)
	for i := range made.Bias {
		made.Bias[i] += by(i)
	}
	return made
}

// selected has the elements named by index; a negative index stands for the constant.
func (e Expression) selected(index []int32, constant float64, image []int) Expression {
	made := Expression{Size: len(index), Image: image, Rescaled: e.Rescaled}
	for _, term := range e.Terms {
		made.Terms = append(made.Terms, Term{term.Node, term.Matrix.selected(index)})
	}
	if e.Bias != nil {
		made.Bias = make([]float64, len(index))
		for i, from := range index {
			made.Bias[i] = constant
			if from >= 0 {
				made.Bias[i] = e.Bias[from]
			}
		}
	}
	return made
}

// entriesOf is how many entries the elements named by index have.
func (e Expression) entriesOf(index []int32) int {
	count := 0
	for _, term := range e.Terms {
		for _, row := range index {
			if row >= 0 {
				count += int(term.Matrix.Start[row+1] - term.Matrix.Start[row])
			}
		}
	}
	return count
}

// plus is the sum of two expressions.
func (e Expression) plus(other Expression) Expression {
	made := Expression{Terms: slices.Clone(e.Terms), Size: e.Size, Image: e.Image, Rescaled: true}
	if made.Image == nil {
		made.Image = other.Image
	}
	for _, term := range other.Terms {
		at := slices.IndexFunc(made.Terms, func(mine Term) bool { return mine.Node == term.Node })
		if at < 0 {
			made.Terms = append(made.Terms, term)
		} else {
			made.Terms[at].Matrix = made.Terms[at].Matrix.plus(term.Matrix)
		}
	}
	if e.Bias != nil && other.Bias != nil {
		made.Bias = slices.Clone(e.Bias)
		for i := range made.Bias {
			made.Bias[i] += other.Bias[i]
		}
	}
	return made
}

// room is how many entries take as much memory as all matrices: rows without entries count, too.
func (e Expression) room() int {
	count := 0
	for _, term := range e.Terms {
		count += max(term.Matrix.Rows, term.Matrix.Entries())
	}
	return count
}

// entries is the number of entries of all matrices.
func (e Expression) entries() int {
	count := 0
	for _, term := range e.Terms {
		count += term.Matrix.Entries()
	}
	return count
}
