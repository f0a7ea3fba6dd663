package session_test

import (
	"errors"
	"testing"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
	"privet/ckks/internal/testserver"
)

// behind is a client's first error at a server whose guard refuses from the call `refused` on, and how many answers each call
// was about.
func behind(t *testing.T, terms session.Terms, refused int) (error, []int) {
	t.Helper()
	listener, keys := listen(t)
	sample := testmodel.New(2, 1)
	served, err := session.Serve(sample.Public, sample.Private, terms, 0)
	if err != nil {
		t.Fatal(err)
	}
	var asked []int
	server := &session.Server{
		Programs: []*session.Served{served}, Timeout: testserver.Patience,
		Notify: func(e session.Event) {
			if len(asked) == 1 && e.Kind != "failed" {
				t.Errorf("%s for a client that was refused", e.Kind)
			}
		},
		Guard: func(c *channel.Channel, answers int) error {
			if asked = append(asked, answers); len(asked) < refused {
				return nil
			}
			return &session.Refusal{Reason: channel.NotAllowed, Text: "not you"}
		},
	}
	done := make(chan error, 1)
	go func() { done <- server.Run(listener) }()
	talk := func() error {
		client, err := session.Open(connect(t, listener.Addr().String(), keys), "", "")
		if err != nil {
			return err
		}
		if _, err = client.Prepare(); err != nil {
			return err
		}
		_, _, err = client.Infer([][][]float64{samples(1)})
		return err
	}
	err = talk()
	listener.Close()
	if failure := <-done; failure != nil {
		t.Error(failure)
	}
	return err, asked
}

func TestAGuardIsAskedBeforeAnythingIsMadeAndBeforeEachAnswer(t *testing.T) {
	terms := session.Terms{Scenario: session.EncryptedData}
	for refused, expected := range map[int][]int{1: {0}, 2: {0, 0}, 3: {0, 0, 2}} {
		err, asked := behind(t, terms, refused)
		var known *channel.Error
		if !errors.As(err, &known) || known.Family != channel.FamilyRefused {
			t.Errorf("call %d: %v", refused, err)
		}
		if len(asked) != len(expected) || asked[len(asked)-1] != expected[len(expected)-1] {
			t.Errorf("call %d: asked for %v answers", refused, asked)
		}
	}
	if err, _ := behind(t, terms, 100); err != nil {
		t.Errorf("with nothing refused: %v", err)
	}
}
