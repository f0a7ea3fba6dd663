package network

import "slices"

// Matrix is a sparse matrix by rows. Value is nil where only the places of the entries are known, as at a client.
type Matrix struct {
	Rows, Columns int
	Start         []int32
	Column        []int32
	Value         []float64
}

// identity is the square matrix of ones on the diagonal.
func identity(size int, valued bool) *Matrix {
	m := newMatrix(size, size, size)
	for i := range size {
		m.append(int32(i), 1, valued)
		m.endRow()
	}
	return m
}

func newMatrix(rows, columns, entries int) *Matrix {
	return &Matrix{
		Rows: rows, Columns: columns,
		Start:  append(make([]int32, 0, rows+1), 0),
		Column: make([]int32, 0, entries),
	}
}

func (m *Matrix) append(column int32, value float64, valued bool) {
	m.Column = append(m.Column, column)
	if valued {
		m.Value = append(m.Value, value)
	}
}

func (m *Matrix) endRow() { m.Start = append(m.Start, int32(len(m.Column))) }

// Entries is the number of entries.
func (m *Matrix) Entries() int { return len(m.Column) }

// IsIdentity tells whether the places and values are those of `identity`.
func (m *Matrix) IsIdentity() bool {
	return m.isPlace() && !slices.ContainsFunc(m.Value, func(value float64) bool { return value != 1 })
}

// isPlace tells whether the places of the entries are those of `identity`, whatever their values: what both a party with
// weights and one without can tell.
func (m *Matrix) isPlace() bool {
	if m.Rows != m.Columns || len(m.Column) != m.Rows {
		return false
	}
	for i, column := range m.Column {
		if int(column) != i || int(m.Start[i]) != i {
			return false
		}
	}
	return true
}

// productsWith is how many products of entries m * b takes, which bounds its entries.
func (m *Matrix) productsWith(b *Matrix) int {
	total := 0
	for _, inner := range m.Column {
		total += int(b.Start[inner+1] - b.Start[inner])
	}
	return total
}

// times is the product m * b.
func (m *Matrix) times(b *Matrix) *Matrix {
	if b.IsIdentity() {
		return m
	}
	if m.IsIdentity() {
		return b
	}
	made := newMatrix(m.Rows, b.Columns, len(m.Column))
	valued := m.Value != nil && b.Value != nil
	sums := make([]float64, b.Columns)
	seen := make([]int32, b.Columns)
	for row := range m.Rows {
		first := len(made.Column)
		for at := m.Start[row]; at < m.Start[row+1]; at++ {
			inner := m.Column[at]
			for from := b.Start[inner]; from < b.Start[inner+1]; from++ {
				column := b.Column[from]
				if seen[column] != int32(row)+1 {
					seen[column] = int32(row) + 1
					sums[column] = 0
					made.Column = append(made.Column, column)
				}
				if valued {
					sums[column] += m.Value[at] * b.Value[from]
				}
			}
		}
		if valued {
			for _, column := range made.Column[first:] {
				made.Value = append(made.Value, sums[column])
			}
		}
		made.endRow()
	}
	return made
}

// plus is the sum of two matrices of one size.
func (m *Matrix) plus(b *Matrix) *Matrix {
	made := newMatrix(m.Rows, m.Columns, len(m.Column)+len(b.Column))
	valued := m.Value != nil && b.Value != nil
	place := make([]int32, m.Columns)
	for row := range m.Rows {
		first := int32(len(made.Column))
		for at := m.Start[row]; at < m.Start[row+1]; at++ {
			place[m.Column[at]] = int32(len(made.Column)) + 1
			made.append(m.Column[at], valueAt(m, at), valued)
		}
		for at := b.Start[row]; at < b.Start[row+1]; at++ {
			if known := place[b.Column[at]]; known > first {
				if valued {
					made.Value[known-1] += b.Value[at]
				}
				continue
			}
			made.append(b.Column[at], valueAt(b, at), valued)
		}
		made.endRow()
	}
	return made
}

func valueAt(m *Matrix, at int32) float64 {
	if m.Value == nil {
		return 0
	}
	return m.Value[at]
}

// scaled is the matrix with each row times a factor of its own.
func (m *Matrix) scaled(factor func(row int) float64) *Matrix {
	if m.Value == nil {
		return m
	}
	made := *m
	made.Value = make([]float64, len(m.Value))
	for row := range m.Rows {
		by := factor(row)
		for at := m.Start[row]; at < m.Start[row+1]; at++ {
			made.Value[at] = m.Value[at] * by
		}
	}
	return &made
}

// selected has the rows named by index; a negative index stands for an empty row.
func (m *Matrix) selected(index []int32) *Matrix {
	made := newMatrix(len(index), m.Columns, len(index))
	for _, row := range index {
		if row >= 0 {
			made.Column = append(made.Column, m.Column[m.Start[row]:m.Start[row+1]]...)
			if m.Value != nil {
				made.Value = append(made.Value, m.Value[m.Start[row]:m.Start[row+1]]...)
			}
		}
		made.endRow()
	}
	if m.Value != nil && made.Value == nil {
		made.Value = []float64{}
	}
	return made
}
