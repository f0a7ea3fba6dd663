package session_test

import (
	"errors"
	"strings"
	"testing"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
	"privet/ckks/internal/testserver"
)

// recordingGate is a gate that does with each job what a test says, and remembers how it ended.
type recordingGate struct {
	enter func(work session.Work) (gone <-chan struct{}, err error)
	left  chan error
}

func (g *recordingGate) Enter(_ *channel.Channel, work session.Work) (*session.Permit, error) {
	gone, err := g.enter(work)
	if err != nil {
		return nil, err
	}
	return &session.Permit{Gone: gone, Release: func(err error) { g.left <- err }}, nil
}

// guarded is a client that has sent its keys to a server behind a gate.
func guarded(t *testing.T, g *recordingGate) (*session.Client, chan session.Event, error) {
	t.Helper()
	g.left = make(chan error, 16)
	listener, keys := listen(t)
	terms := session.Terms{Scenario: session.EncryptedData}
	sample := testmodel.New(2, 1)
	events := testserver.RunBehind(t, g, listener, sample.Public, sample.Private, terms)
	client, err := session.Open(connect(t, listener.Addr().String(), keys), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Prepare()
	return client, events, err
}

func TestAGateIsPassedForKeysAndForEachInference(t *testing.T) {
	var works []session.Work
	g := &recordingGate{enter: func(work session.Work) (<-chan struct{}, error) {
		works = append(works, work)
		return nil, nil
	}}
	client, events, err := guarded(t, g)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := client.Infer([][][]float64{samples(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := <-g.left; err != nil {
			t.Error(err)
		}
	}
	for _, kind := range []string{"prepared", "inferred", "inferred", "left"} {
		if event := <-events; event.Kind != kind {
			t.Errorf("the server notified %q (%v), not %q", event.Kind, event.Err, kind)
		}
	}
	if len(works) != 3 || works[0] != session.WorkKeys || works[1] != session.WorkInference {
		t.Errorf("the gate was asked for %v", works)
	}
}

func TestAGateIsPassedForAnEncryptedModelAndForEachStepOfItsInferences(t *testing.T) {
	for _, deepModel := range []bool{false, true} {
		var works []session.Work
		g := &recordingGate{left: make(chan error, 256), enter: func(work session.Work) (<-chan struct{}, error) {
			works = append(works, work)
			return nil, nil
		}}
		flat, layered := testmodel.New(2, 1), deep()
		public, private := flat.Public, flat.Private
		if deepModel {
			public, private = layered.Public, layered.Private
		}
		listener, keys := listen(t)
		terms := session.Terms{Scenario: session.EncryptedModel}
		events := testserver.RunBehind(t, g, listener, public, private, terms)
		evaluator, err := session.OpenEvaluator(connect(t, listener.Addr().String(), keys), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := evaluator.Prepare(); err != nil {
			t.Fatal(err)
		}
		steps := 1 + evaluator.Plan.Refreshes()
		if deepModel {
			predictDeep(t, evaluator, layered)
		} else if _, _, err := evaluator.Infer([][][]float64{samples(1)}, ignore); err != nil {
			t.Fatal(err)
		}
		if err := evaluator.Close(); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"prepared", "inferred", "left"} {
			if event := <-events; event.Kind != kind {
				t.Errorf("the server notified %q (%v), not %q", event.Kind, event.Err, kind)
			}
		}
		counted := map[session.Work]int{}
		for _, work := range works {
			counted[work]++
			if err := <-g.left; err != nil {
				t.Error(err)
			}
		}
		if counted[session.WorkKeys] != 1 || counted[session.WorkInference] != 1 || counted[session.WorkStep] < 1 {
			t.Errorf("the gate was asked for %v", works)
		}
		if deepModel && (steps == 1 || counted[session.WorkStep] < 2) {
			t.Errorf("refreshes did not pass the gate: %v", works)
		}
	}
}

func TestAClientIsToldWhyAGateIsShut(t *testing.T) {
	g := &recordingGate{enter: func(session.Work) (<-chan struct{}, error) {
		return nil, &session.Refusal{Reason: channel.Busy, Text: "the keys take 5 GB, and there are 4"}
	}}
	_, events, err := guarded(t, g)
	var known *channel.Error
	if !errors.As(err, &known) || known.Family != channel.FamilyBusy || !strings.Contains(known.Error(), "5 GB, and there are 4") {
		t.Errorf("%v", err)
	}
	for _, kind := range []string{"failed", "left"} {
		if event := <-events; event.Kind != kind {
			t.Errorf("the server notified %q, not %q", event.Kind, kind)
		}
	}
}

func TestAnEvaluationStopsThatNobodyWaitsFor(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	g := &recordingGate{enter: func(session.Work) (<-chan struct{}, error) { return gone, nil }}
	client, _, err := guarded(t, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-g.left; err != nil {
		t.Errorf("keys: %v", err)
	}
	if _, _, err := client.Infer([][][]float64{samples(1)}); err == nil {
		t.Error("an evaluation went on")
	}
	if err := <-g.left; !errors.Is(err, evaluate.ErrStopped) {
		t.Errorf("%v", err)
	}
}
