package cohort

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/program"
	"privet/ckks/internal/testmodel"
)

const patience = 30 * time.Second

// stage is a coordinator's listener and what others need to come to it.
type stage struct {
	sample   sample
	setup    *Setup
	listener *channel.Listener
	keys     string
}

// sample is a program with what it computes in the clear.
type sample struct {
	public, private []byte
	inputs          int
	run             func([]float64) []float64
	light           bool
}

func shallow(degree int) sample {
	p := testmodel.New(degree, 5)
	return sample{p.Public, p.Private, testmodel.Inputs, p.Run, false}
}

func deep() sample {
	p := testmodel.NewDeep(4, 15, 5)
	return sample{p.Public, p.Private, testmodel.Hidden, p.Run, false}
}

func newStage(t *testing.T, sample sample, members int) stage {
	t.Helper()
	keys := t.TempDir()
	if err := testmodel.Certificates(keys); err != nil {
		t.Fatal(err)
	}
	setup, err := NewSetup(sample.public, members, !sample.light)
	if err != nil {
		t.Fatal(err)
	}
	own, err := channel.LoadCredentials(keys, "server")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := channel.Listen("127.0.0.1:0", own)
	if err != nil {
		t.Fatal(err)
	}
	return stage{sample, setup, listener, keys}
}

func (s stage) credentials(t *testing.T, role string) *channel.Credentials {
	credentials, err := channel.LoadCredentials(s.keys, role)
	if err != nil {
		t.Error(err)
	}
	return credentials
}

func (s stage) dial(t *testing.T, role string) *channel.Channel {
	credentials := s.credentials(t, role)
	link, err := channel.Dial(s.listener.Addr().String(), "127.0.0.1", credentials, patience)
	if err != nil {
		t.Error(err)
		return nil
	}
	return link
}

// come introduces a party that then says no more than a message, and stays until the test ends.
func (s stage) come(t *testing.T, h hello, message []byte) {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	go func() {
		role := "client"
		if h.Role == roleMember {
			role = fmt.Sprintf("member-%d", h.Member)
		}
		link := s.dial(t, role)
		if link == nil {
			return
		}
		defer link.Close()
		if introduce(link, h) == nil && message != nil {
			_ = link.Send(message)
		}
		<-ended
	}()
}

func (s stage) member(t *testing.T, index int) {
	var weights *program.Weights
	if index == 0 {
		var err error
		if weights, err = program.ParseWeights(s.sample.private, s.setup.Program); err != nil {
			t.Error(err)
			return
		}
	}
	link := s.dial(t, fmt.Sprintf("member-%d", index))
	defer link.Close()
	if _, err := Member(link, s.credentials(t, fmt.Sprintf("member-%d", index)), s.setup, index, weights, func() {}); err != nil {
		t.Errorf("member %d: %v", index, err)
	}
}

func TestACohortPredicts(t *testing.T) {
	for _, members := range []int{2, 3, 5} {
		predict(t, shallow(2), members)
	}
}

func TestProductsOfCompositions(t *testing.T) {
	p := testmodel.NewGate(5)
	// Polynomials of random coefficients are steeper than any that stands for an activation.
	predict(t, sample{p.Public, p.Private, testmodel.Inputs, p.Run, true}, 2)
}

func TestPolynomialsOfHigherDegrees(t *testing.T) { predict(t, shallow(7), 2) }

func TestACohortRefreshes(t *testing.T) {
	if s := predict(t, deep(), 3); s.setup.Plan.Refreshes() == 0 {
		t.Error("nothing was refreshed")
	}
}

func TestABatchGoesInGroups(t *testing.T) {
	p := testmodel.NewBatch(2, 5, 40000)
	s := newStage(t, sample{p.Public, p.Private, testmodel.Inputs, p.Run, false}, 2)
	if s.setup.Plan.Groups < 2 {
		t.Errorf("%d groups of %d", s.setup.Plan.Groups, s.setup.Plan.Batch)
	}
	s.setup.Fit(1) // and layer after layer
	s.predict(t)
}

func TestACoordinatorWithLittleMemoryGetsLayerAfterLayer(t *testing.T) {
	s := newStage(t, deep(), 2)
	all := s.setup.Plan.CohortMemory()
	if need := s.setup.Fit(all - 1); need >= all || !s.setup.Streamed {
		t.Errorf("%d bytes instead of %d", need, all)
	}
	s.predict(t)
}

// predict runs a cohort and compares its results.
func predict(t *testing.T, sample sample, members int) stage {
	t.Helper()
	s := newStage(t, sample, members)
	s.predict(t)
	return s
}

func (s stage) predict(t *testing.T) {
	t.Helper()
	sample, members := s.sample, s.setup.Members
	for index := range members {
		go s.member(t, index)
	}
	inputs := make([][]float64, s.setup.Program.Batch)
	for i := range inputs {
		inputs[i] = make([]float64, sample.inputs)
		for k := range inputs[i] {
			inputs[i][k] = math.Sin(float64(i + 3*k))
		}
	}
	results := make(chan [][][]float64, 1)
	go func() { results <- s.query(t, inputs) }()
	connections, err := Accept(s.listener, s.setup, patience, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer connections.Close(nil)
	if err := s.coordinate(connections); err != nil {
		t.Fatal(err)
	}
	outputs := <-results
	s.checkTraffic(t, connections)
	worst := 0.0
	for i, x := range inputs {
		for k, expected := range sample.run(x) {
			worst = max(worst, math.Abs(outputs[0][i][k]-expected))
		}
	}
	bound := 1.0 / (1 << 9)
	if len(inputs) > testmodel.Batch {
		bound *= 2 // noise exceeds the other once in 150,000 times
	}
	if !(worst < bound) {
		t.Errorf("%d members: off by %v", members, worst)
	}
	t.Logf("%d members: off by %.2g", members, worst)
}

// statementBytes is more than the statements that a party sends of each member.
const statementBytes = 10_000

// checkTraffic compares what members and the coordinator sent each other with the plan, up to headers, greetings and statements.
func (s stage) checkTraffic(t *testing.T, connections *Connections) {
	t.Helper()
	sent, received, summary := int64(0), int64(0), s.setup.Summary()
	for _, link := range connections.Members {
		sent, received = sent+link.Sent, received+link.Received
	}
	planned := map[string][2]int64{
		"the coordinator": {sent, summary.CoordinatorBytes},
		"members":         {received, int64(s.setup.Members)*summary.MemberBytes + summary.ModelBytes},
	}
	for who, bytes := range planned {
		if bytes[0] < bytes[1] || bytes[0] > bytes[1]+int64((1000+statementBytes*s.setup.Members)*s.setup.Members) {
			t.Errorf("%s sent %d bytes, %d planned", who, bytes[0], bytes[1])
		}
	}
}

func (s stage) query(t *testing.T, inputs [][]float64) [][][]float64 {
	link := s.dial(t, "client")
	defer link.Close()
	outputs, err := Client(link, s.credentials(t, "client"), s.setup, [][][]float64{inputs}, func() {})
	if err != nil {
		t.Error(err)
	}
	return outputs
}

func (s stage) coordinate(connections *Connections) error {
	return Coordinate(s.setup, connections.Members, connections.Client, func() {}, func(evaluate.Step) {})
}

// TestAMemberThatFailsARefreshIsNamed has member 1 take part until the first refresh, and then be silent or send another
// share than it should.
func TestAMemberThatFailsARefreshIsNamed(t *testing.T) {
	for name, share := range map[string][]byte{"silent": nil, "wrong": []byte("nonsense")} {
		s := newStage(t, deep(), 2)
		ended := make(chan struct{})
		go func() {
			link := s.dial(t, "member-0")
			defer link.Close()
			weights, err := program.ParseWeights(s.sample.private, s.setup.Program)
			if err != nil {
				t.Error(err)
				return
			}
			// The coordinator closes the connections.
			_, _ = Member(link, s.credentials(t, "member-0"), s.setup, 0, weights, func() {})
		}()
		go func() {
			link := s.dial(t, "member-1")
			defer link.Close()
			if err := introduce(link, s.setup.hello(roleMember, 1)); err != nil {
				t.Error(err)
				return
			}
			m, err := join(link, s.setup)
			if err == nil {
				err = makeKeys(link, s.credentials(t, "member-1"), s.setup, 1, m)
			}
			if err != nil {
				t.Error(err)
				return
			}
			if share == nil {
				return
			}
			_ = link.Send(share)
			<-ended
		}()
		go func() {
			link := s.dial(t, "client")
			defer link.Close()
			row := make([]float64, testmodel.Hidden)
			_, _ = Client(link, s.credentials(t, "client"), s.setup, [][][]float64{{row, row}}, func() {})
		}()
		connections, err := Accept(s.listener, s.setup, patience, patience)
		if err != nil {
			t.Fatal(err)
		}
		err = s.coordinate(connections)
		if err == nil || !strings.Contains(err.Error(), "member 1: ") {
			t.Errorf("%s: %v", name, err)
		}
		connections.Close(err)
		close(ended)
	}
}

func TestWhoIsAbsentIsNamed(t *testing.T) {
	s := newStage(t, shallow(2), 3)
	hash := s.setup.Program.Hash
	for _, h := range []hello{
		{roleMember, 0, 3, hash, false}, {roleMember, 2, 3, hash, false},
		// A second member 2 and a member of another connections take nobody's seat.
		{roleMember, 2, 3, hash, false}, {roleMember, 1, 4, hash, false}, {roleMember, 1, 3, "other", false},
	} {
		s.come(t, h, nil)
	}
	_, err := Accept(s.listener, s.setup, 3*time.Second, patience)
	if err == nil || !strings.Contains(err.Error(), "member 1, the client has not come within 3s") {
		t.Errorf("%v", err)
	}
}

func TestACertificateOfAnotherMemberTakesNoSeat(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	go func() {
		link := s.dial(t, "member-1")
		defer link.Close()
		if introduce(link, s.setup.hello(roleMember, 0)) == nil {
			_, _ = link.Receive(1) // the refusal
		}
	}()
	_, err := Accept(s.listener, s.setup, 2*time.Second, patience)
	if err == nil || !strings.Contains(err.Error(), "member 0, member 1, the client has not come") {
		t.Errorf("%v", err)
	}
}

func TestAMemberThatSendsNonsenseIsNamed(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	go func() {
		link := s.dial(t, "member-0")
		defer link.Close()
		// Whatever comes of it, the coordinator closes the connections first.
		_, _ = Member(link, s.credentials(t, "member-0"), s.setup, 0, nil, func() {})
	}()
	for _, h := range []hello{s.setup.hello(roleMember, 1), s.setup.hello(roleClient, 0)} {
		var nonsense []byte
		if h.Role == roleMember {
			nonsense = []byte("nonsense")
		}
		s.come(t, h, nonsense)
	}
	connections, err := Accept(s.listener, s.setup, patience, patience)
	if err != nil {
		t.Fatal(err)
	}
	err = s.coordinate(connections)
	if err == nil || !strings.Contains(err.Error(), "member 1: ") {
		t.Errorf("%v", err)
	}
	connections.Close(err)
}

func TestAMemberThatFallsSilentIsNamed(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	go func() {
		link := s.dial(t, "member-0")
		defer link.Close()
		// Whatever comes of it, the coordinator closes the connections first.
		_, _ = Member(link, s.credentials(t, "member-0"), s.setup, 0, nil, func() {})
	}()
	s.come(t, s.setup.hello(roleMember, 1), nil)
	s.come(t, s.setup.hello(roleClient, 0), nil)
	connections, err := Accept(s.listener, s.setup, patience, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	err = Coordinate(s.setup, connections.Members, connections.Client, func() {}, func(evaluate.Step) {})
	if err == nil || !strings.Contains(err.Error(), "member 1: the peer was silent") || strings.Contains(err.Error(), "member 0") {
		t.Errorf("%v", err)
	}
	connections.Close(err)
}
