package cohort

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
	"privet/ckks/internal/wire"
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
	if _, err := Member(link, s.credentials(t, fmt.Sprintf("member-%d", index)), s.setup, index, weights, func() {}, func() {}); err != nil {
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
	if testing.Short() {
		t.Skip("takes long; TestABatchGoesInGroups also goes layer after layer")
	}
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
	run := s.accept(t, patience)
	err := run.coordinate()
	run.end(err)
	if err != nil {
		t.Fatal(err)
	}
	outputs := <-results
	s.checkTraffic(t, run.members)
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
func (s stage) checkTraffic(t *testing.T, members []*channel.Channel) {
	t.Helper()
	sent, received, summary := int64(0), int64(0), s.setup.Summary()
	for _, link := range members {
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

// run is an inference that a test runs in place of a server.
type run struct {
	*stage
	members []*channel.Channel
	client  *channel.Channel
	ended   chan error
}

// accept waits until all members and a client are at a server, whose messages time out after so long.
func (s stage) accept(t *testing.T, timeout time.Duration) run {
	t.Helper()
	runs := make(chan run, 1)
	server := s.server(t, timeout)
	server.coordinate = func(_ *Setup, members []*channel.Channel, client *channel.Channel, _ *Course) error {
		it := run{&s, members, client, make(chan error)}
		runs <- it
		return <-it.ended
	}
	s.start(t, server)
	select {
	case it := <-runs:
		return it
	case <-time.After(patience):
		t.Fatal("not all have come")
		return run{}
	}
}

func (s stage) server(t *testing.T, timeout time.Duration) *Server {
	return &Server{Setup: s.setup, Timeout: timeout, Notify: func(e session.Event) { t.Logf("%s: %v", e.Kind, e.Err) }}
}

// start runs a server until the test ends.
func (s stage) start(t *testing.T, server *Server) {
	done := make(chan error, 1)
	go func() { done <- server.Run(s.listener) }()
	t.Cleanup(func() {
		s.listener.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (r run) coordinate() error { return Coordinate(r.setup, r.members, r.client, &Course{}) }

// end has the server close all connections.
func (r run) end(err error) { r.ended <- err }

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
			_, _ = Member(link, s.credentials(t, "member-0"), s.setup, 0, weights, func() {}, func() {})
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
				_, err = makeKeys(link, s.credentials(t, "member-1"), s.setup, 1, m)
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
		run := s.accept(t, patience)
		err := run.coordinate()
		if err == nil || !strings.Contains(err.Error(), "member 1: ") {
			t.Errorf("%s: %v", name, err)
		}
		run.end(err)
		close(ended)
	}
}

// asked is what becomes of a client at a server that waits two seconds for members.
func (s stage) asked(t *testing.T) error {
	s.start(t, s.server(t, 2*time.Second))
	link := s.dial(t, "client")
	defer link.Close()
	row := make([]float64, testmodel.Inputs)
	_, err := Client(link, s.credentials(t, "client"), s.setup, [][][]float64{{row, row}}, func() {})
	return err
}

func TestWhoIsAbsentIsNamed(t *testing.T) {
	s := newStage(t, shallow(2), 3)
	hash := s.setup.Program.Hash
	for _, h := range []hello{
		{roleMember, 0, 3, hash, false}, {roleMember, 2, 3, hash, false},
		// A second member 2 takes nobody's seat but its own; members of another cohort or program, and with light noise, none.
		{roleMember, 2, 3, hash, false}, {roleMember, 1, 4, hash, false}, {roleMember, 1, 3, "other", false},
		{roleMember, 1, 3, hash, true},
	} {
		s.come(t, h, nil)
	}
	if err := s.asked(t); err == nil || !strings.Contains(err.Error(), "member 1 of the cohort has not come") {
		t.Errorf("%v", err)
	}
}

func TestACertificateOfAnotherMemberTakesNoSeat(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	refused := make(chan error, 1)
	go func() {
		link := s.dial(t, "member-1")
		defer link.Close()
		err := introduce(link, s.setup.hello(roleMember, 0))
		if err == nil {
			_, err = link.Receive(1)
		}
		refused <- err
	}()
	if err := s.asked(t); err == nil || !strings.Contains(err.Error(), "member 0, member 1 of the cohort has not come") {
		t.Errorf("%v", err)
	}
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "is not that of member 0") {
		t.Errorf("%v", err)
	}
}

func TestAMemberThatSendsNonsenseIsNamed(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	go func() {
		link := s.dial(t, "member-0")
		defer link.Close()
		// Whatever comes of it, the coordinator closes the connections first.
		_, _ = Member(link, s.credentials(t, "member-0"), s.setup, 0, nil, func() {}, func() {})
	}()
	for _, h := range []hello{s.setup.hello(roleMember, 1), s.setup.hello(roleClient, 0)} {
		var nonsense []byte
		if h.Role == roleMember {
			nonsense = []byte("nonsense")
		}
		s.come(t, h, nonsense)
	}
	run := s.accept(t, patience)
	err := run.coordinate()
	if err == nil || !strings.Contains(err.Error(), "member 1: ") {
		t.Errorf("%v", err)
	}
	run.end(err)
}

func TestAMemberThatFallsSilentIsNamed(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	go func() {
		link := s.dial(t, "member-0")
		defer link.Close()
		// Whatever comes of it, the coordinator closes the connections first.
		_, _ = Member(link, s.credentials(t, "member-0"), s.setup, 0, nil, func() {}, func() {})
	}()
	s.come(t, s.setup.hello(roleMember, 1), nil)
	s.come(t, s.setup.hello(roleClient, 0), nil)
	run := s.accept(t, 2*time.Second)
	err := run.coordinate()
	if err == nil || !strings.Contains(err.Error(), "member 1: the peer was silent") || strings.Contains(err.Error(), "member 0") {
		t.Errorf("%v", err)
	}
	run.end(err)
}

// TestAnInputBeyondItsPrimesIsRefused has the client send a ciphertext of the right size whose coefficients are not reduced.
func TestAnInputBeyondItsPrimesIsRefused(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	weights, err := program.ParseWeights(s.sample.private, s.setup.Program)
	if err != nil {
		t.Fatal(err)
	}
	for index, own := range []*program.Weights{weights, nil} {
		go func() {
			role := fmt.Sprintf("member-%d", index)
			link := s.dial(t, role)
			defer link.Close()
			// The coordinator closes the connections.
			_, _ = Member(link, s.credentials(t, role), s.setup, index, own, func() {}, func() {})
		}()
	}
	go func() {
		link := s.dial(t, "client")
		defer link.Close()
		row := make([]float64, testmodel.Inputs)
		unreduced := bytes.Repeat([]byte{255}, wire.PolysBytes(s.setup.Params, s.setup.Params.MaxLevel(), 2))
		// It comes before the ciphertexts of the client's own.
		_, _ = Client(link, s.credentials(t, "client"), s.setup, [][][]float64{{row, row}}, func() { _ = link.Send(unreduced) })
	}()
	run := s.accept(t, patience)
	if err = run.coordinate(); err == nil || !strings.Contains(err.Error(), "not below its prime") || strings.Contains(err.Error(), "member") {
		t.Errorf("%v", err)
	}
	run.end(err)
}
