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
	"privet/ckks/internal/toy"
)

const patience = 30 * time.Second

// stage is a coordinator's listener and what others need to come to it.
type stage struct {
	sample   toy.Program
	setup    *Setup
	listener *channel.Listener
	keys     string
}

func newStage(t *testing.T, members int) stage {
	t.Helper()
	keys := t.TempDir()
	if err := toy.Certificates(keys); err != nil {
		t.Fatal(err)
	}
	sample := toy.New(2, 5)
	setup, err := NewSetup(sample.Public, members)
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

func (s stage) dial(t *testing.T, role string) *channel.Channel {
	credentials, err := channel.LoadCredentials(s.keys, role)
	if err != nil {
		t.Error(err)
		return nil
	}
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
		if weights, err = program.ParseWeights(s.sample.Private, s.setup.Program); err != nil {
			t.Error(err)
			return
		}
	}
	link := s.dial(t, fmt.Sprintf("member-%d", index))
	defer link.Close()
	if _, err := Member(link, s.setup, index, weights); err != nil {
		t.Errorf("member %d: %v", index, err)
	}
}

func TestACohortPredicts(t *testing.T) {
	for _, members := range []int{2, 3, 5} {
		s := newStage(t, members)
		for index := range members {
			go s.member(t, index)
		}
		inputs := make([][]float64, toy.Batch)
		for i := range inputs {
			inputs[i] = make([]float64, toy.Inputs)
			for k := range inputs[i] {
				inputs[i][k] = math.Sin(float64(i + 3*k))
			}
		}
		results := make(chan [][][]float64, 1)
		go func() {
			link := s.dial(t, "client")
			defer link.Close()
			outputs, err := Client(link, s.setup, [][][]float64{inputs}, func() {})
			if err != nil {
				t.Error(err)
			}
			results <- outputs
		}()
		meeting, err := Meet(s.listener, s.setup, patience, patience)
		if err != nil {
			t.Fatal(err)
		}
		err = Coordinate(s.setup, meeting.Members, meeting.Client, func() {}, func(evaluate.Step) {})
		if err != nil {
			t.Fatal(err)
		}
		outputs := <-results
		worst := 0.0
		for i, x := range inputs {
			for k, expected := range s.sample.Run(x) {
				worst = max(worst, math.Abs(outputs[0][i][k]-expected))
			}
		}
		if !(worst < 1.0/(1<<9)) {
			t.Errorf("%d members: off by %v", members, worst)
		}
		t.Logf("%d members: off by %.2g", members, worst)
		meeting.Close(nil)
	}
}

func TestWhoIsAbsentIsNamed(t *testing.T) {
	s := newStage(t, 3)
	hash := s.setup.Program.Hash
	for _, h := range []hello{
		{roleMember, 0, 3, hash}, {roleMember, 2, 3, hash},
		// A second member 2 and a member of another meeting take nobody's seat.
		{roleMember, 2, 3, hash}, {roleMember, 1, 4, hash}, {roleMember, 1, 3, "other"},
	} {
		s.come(t, h, nil)
	}
	_, err := Meet(s.listener, s.setup, 3*time.Second, patience)
	if err == nil || !strings.Contains(err.Error(), "member 1, the client has not come within 3s") {
		t.Errorf("%v", err)
	}
}

func TestACertificateOfAnotherMemberTakesNoSeat(t *testing.T) {
	s := newStage(t, 2)
	go func() {
		link := s.dial(t, "member-1")
		defer link.Close()
		if introduce(link, hello{roleMember, 0, 2, s.setup.Program.Hash}) == nil {
			_, _ = link.Receive(1) // the refusal
		}
	}()
	_, err := Meet(s.listener, s.setup, 2*time.Second, patience)
	if err == nil || !strings.Contains(err.Error(), "member 0, member 1, the client has not come") {
		t.Errorf("%v", err)
	}
}

func TestAMemberThatSendsNonsenseIsNamed(t *testing.T) {
	s := newStage(t, 2)
	go func() {
		link := s.dial(t, "member-0")
		defer link.Close()
		// Whatever comes of it, the coordinator ends the meeting first.
		_, _ = Member(link, s.setup, 0, nil)
	}()
	for _, h := range []hello{{roleMember, 1, 2, s.setup.Program.Hash}, {roleClient, 0, 2, s.setup.Program.Hash}} {
		var nonsense []byte
		if h.Role == roleMember {
			nonsense = []byte("nonsense")
		}
		s.come(t, h, nonsense)
	}
	meeting, err := Meet(s.listener, s.setup, patience, patience)
	if err != nil {
		t.Fatal(err)
	}
	err = Coordinate(s.setup, meeting.Members, meeting.Client, func() {}, func(evaluate.Step) {})
	if err == nil || !strings.Contains(err.Error(), "member 1: ") {
		t.Errorf("%v", err)
	}
	meeting.Close(err)
}

func TestAMemberThatFallsSilentIsNamed(t *testing.T) {
	s := newStage(t, 2)
	go func() {
		link := s.dial(t, "member-0")
		defer link.Close()
		// Whatever comes of it, the coordinator ends the meeting first.
		_, _ = Member(link, s.setup, 0, nil)
	}()
	s.come(t, hello{roleMember, 1, 2, s.setup.Program.Hash}, nil)
	s.come(t, hello{roleClient, 0, 2, s.setup.Program.Hash}, nil)
	meeting, err := Meet(s.listener, s.setup, patience, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	err = Coordinate(s.setup, meeting.Members, meeting.Client, func() {}, func(evaluate.Step) {})
	if err == nil || !strings.Contains(err.Error(), "member 1: the peer was silent") || strings.Contains(err.Error(), "member 0") {
		t.Errorf("%v", err)
	}
	meeting.Close(err)
}

func TestOtherPolynomialsAreRefused(t *testing.T) {
	if _, err := NewSetup(toy.New(3, 1).Public, 3); err == nil || !strings.Contains(err.Error(), "squares and products only") {
		t.Errorf("%v", err)
	}
}
