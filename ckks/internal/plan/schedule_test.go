package plan

import (
	"fmt"
	"strings"
	"testing"

	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
	"privet/ckks/internal/program"
	"privet/ckks/internal/testmodel"
)

func deep(t *testing.T, layers, degree int) *network.Network {
	t.Helper()
	parsed, err := program.Parse(testmodel.NewDeep(layers, degree, 1).Public)
	if err != nil {
		t.Fatal(err)
	}
	n, err := network.Build(parsed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// cheapest is the least cost of all schedules, tried one by one.
func cheapest(s *scheduler, from state, index int) (float64, bool) {
	if index < 0 {
		return from.cost, true
	}
	best, any := 0.0, false
	for _, chosen := range s.choices(index) {
		made, ok := s.before(index, from, chosen)
		if !ok {
			continue
		}
		if cost, ok := cheapest(s, made, index-1); ok && (!any || cost < best) {
			best, any = cost, true
		}
	}
	return best, any
}

func TestTheCheapestScheduleIsFound(t *testing.T) {
	n := deep(t, 5, 7)
	refreshed := 0
	for depth := 4; depth <= 12; depth++ {
		set, ok := params.Choose(depth, 15)
		if !ok {
			t.Fatalf("no ring for %d levels", depth)
		}
		s := &scheduler{network: n, set: set, refresh: Refresh{Members: 3}, batch: 2}
		s.floor = s.refresh.floor(set)
		needed := make([]int, len(n.Nodes))
		for i := range needed {
			needed[i] = -1
		}
		start := state{needed: needed, choices: make([]choice, len(n.Nodes))}
		least, possible := cheapest(s, start, len(n.Nodes)-1)
		found, ok := schedule(n, set, Refresh{Members: 3})
		if ok != possible || (ok && found.cost != least) {
			t.Errorf("%d levels: found %v (%v), the best is %v (%v)", depth, found.cost, ok, least, possible)
		}
		for index := range found.Values {
			if found.Arguments[index] || found.Values[index] {
				refreshed++
			}
		}
	}
	if refreshed == 0 {
		t.Error("no schedule refreshed anything")
	}
}

func TestLevelsFitTogether(t *testing.T) {
	n := deep(t, 7, 15)
	p, err := Refreshed(n, Refresh{Members: 3})
	if err != nil {
		t.Fatal(err)
	}
	if p.Refreshes() == 0 {
		t.Fatal("35 levels without a refresh")
	}
	for index, node := range n.Nodes {
		for i, expression := range node.Arguments {
			for _, term := range expression.Terms {
				if p.Made[term.Node] < p.Entering[index][i] {
					t.Errorf("%s enters at level %d, %s is at %d", node.Name, p.Entering[index][i], n.Nodes[term.Node].Name, p.Made[term.Node])
				}
			}
			after := p.Entering[index][i] - 1
			if p.Arguments[index] && after != p.Floor || !p.Arguments[index] && after != p.Argument[index] {
				t.Errorf("%s: matrices end at level %d, the argument is at %d", node.Name, after, p.Argument[index])
			}
		}
		if node.Kind != network.Polynomial {
			continue
		}
		after := p.Argument[index] - depth(node.Degree)
		if p.Values[index] && after != p.Floor || !p.Values[index] && after != p.Made[index] {
			t.Errorf("%s ends at level %d, not %d", node.Name, after, p.Made[index])
		}
	}
}

func TestMasksHaveRoomAtTheFloor(t *testing.T) {
	for members := 2; members <= 20; members++ {
		for depth := 5; depth < 12; depth++ {
			set, ok := params.Choose(depth, 14)
			if !ok {
				continue
			}
			floor := Refresh{Members: members}.floor(set)
			masks := 0
			for 1<<masks < members {
				masks++
			}
			room := set.BaseBits + floor*set.ScaleBits
			if room < MaskBits+set.ScaleBits+masks {
				t.Errorf("%d members at level %d: %d bits", members, floor, room)
			}
			if room-set.ScaleBits > MaskBits+set.ScaleBits+masks {
				t.Errorf("%d members: level %d is more than masks need", members, floor)
			}
		}
	}
}

// TestMaskedValuesDoNotWrapAround looks at the room that an oblivious refresh leaves, with the plan of a deep network.
func TestMaskedValuesDoNotWrapAround(t *testing.T) {
	n := deep(t, 8, 7)
	n.Known = true
	p, err := Shared(n, 1, params.Decryptions, 1)
	if err != nil {
		t.Fatal(err)
	}
	if p.Refreshes() == 0 {
		t.Fatal("32 levels without a refresh")
	}
	modulus := p.Set.BaseBits + (p.Floor-p.Set.Floor())*p.Set.ScaleBits
	if modulus < WrapBits+p.Set.ScaleBits || modulus-p.Set.ScaleBits > WrapBits+p.Set.ScaleBits {
		t.Errorf("a modulus of %d bits at level %d for values of %d", modulus, p.Floor, p.Set.ScaleBits)
	}
	if p.ZeroLevel() < max(p.Floor, p.HidingLevel()) {
		t.Errorf("the encryption of zero is at level %d", p.ZeroLevel())
	}
	if p.Runs() != p.Budget {
		t.Errorf("%d runs of one result in a budget of %d", p.Runs(), p.Budget)
	}
}

// TestNoValueIsRefreshedWhoseRepetitionsDiffer plans a gate between dense layers for cohorts and for encrypted models. A refresh keeps
// what the repetitions of a value have in common, which of a skewed one is not the value.
func TestNoValueIsRefreshedWhoseRepetitionsDiffer(t *testing.T) {
	const width = 33
	dense := func(from, to int) string {
		return fmt.Sprintf(`{"op":"dense","name":"%[2]d","inputs":[%[1]d],"output":%[2]d,"weight":"%[2]d.w","weight_shape":[%[3]d,%[3]d],"bias":null}`, from, to, width)
	}
	cubic := func(from, to int) string {
		return fmt.Sprintf(`{"op":"polynomial","name":"%[2]d","inputs":[%[1]d],"output":%[2]d,"coefficients":"%[2]d.c","bound":"%[2]d.b","degree":3}`, from, to)
	}
	product := func(one, other, to int) string {
		return fmt.Sprintf(`{"op":"mul","name":"%[3]d","inputs":[%[1]d,%[2]d],"output":%[3]d}`, one, other, to)
	}
	for name, operations := range map[string][]string{
		"gate":     {dense(0, 1), cubic(1, 2), product(1, 2, 3), dense(3, 4), cubic(4, 5), dense(5, 6)},
		"bilinear": {dense(0, 1), cubic(1, 2), dense(2, 3), dense(2, 4), product(3, 4, 5), dense(5, 6)},
	} {
		value := fmt.Sprintf(`{"shape":[1,%d],"scale":12}`, width)
		parsed, err := program.Parse(fmt.Appendf(nil, `{"format":"privet-program","version":1,"model":"%s","ring_bits":50,"scale_bits":12,
			"weight_bits":16,"weights_commitment":"%064d","inputs":[{"name":"x","value":0,"magnitude":1.0}],
			"outputs":[{"name":"y","value":6,"client":null}],"values":[%s],"operations":[%s],"batch":1}`,
			name, 0, value+strings.Repeat(","+value, 6), strings.Join(operations, ",")))
		if err != nil {
			t.Fatal(err)
		}
		structure, err := network.Build(parsed, nil)
		if err != nil {
			t.Fatal(err)
		}
		structure = structure.WithBareSquares()
		for _, members := range []int{1, 3} {
			structure.Known = members == 1
			planned, err := Shared(structure, members, params.Decryptions, members)
			if err != nil {
				t.Fatal(err)
			}
			if !planned.Rearranged {
				t.Logf("%s, %d members: nothing is skewed", name, members)
			}
			for index, layout := range planned.Layouts {
				if layout.Skew > 0 && (planned.Values[index] || planned.Arguments[index]) {
					t.Errorf("%s, %d members: node %d is refreshed and %s", name, members, index, layout.Name)
				}
			}
		}
	}
}
