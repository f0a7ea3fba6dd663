package plan

// Point is where a plan refreshes the ciphertexts of a node's value, or of its argument.
type Point struct {
	// Node is the index of the node, Level what its ciphertexts have afterwards.
	Node, Level int
	Value       bool
}

// Points are all refreshes of a run, in order: the same list at every party.
func (p *Plan) Points() []Point {
	var found []Point
	for index := range p.Layouts {
		for _, value := range p.refreshesOf(index) {
			level := p.Argument[index]
			if value {
				level = p.Made[index]
			}
			found = append(found, Point{index, level, value})
		}
	}
	return found
}

// Refreshes is how many ciphertexts are refreshed for a run.
func (p *Plan) Refreshes() int {
	total := 0
	for _, point := range p.Points() {
		total += p.Layouts[point.Node].Ciphertexts
	}
	return total
}

// refreshesOf tells of each refresh of a node whether it is its value's, or before that its argument's.
func (p *Plan) refreshesOf(index int) []bool {
	var found []bool
	if p.Arguments[index] {
		found = append(found, false)
	}
	if p.Values[index] {
		found = append(found, true)
	}
	return found
}
