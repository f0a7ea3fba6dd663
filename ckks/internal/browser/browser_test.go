package browser_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"privet/ckks/internal/browser"
	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
	"privet/ckks/internal/testserver"
)

const patience = testserver.Patience

// fingerprint is what a relay says of a client's certificate.
var fingerprint = bytes.Repeat([]byte{0xab}, 32)

// serve starts a server at a socket, for a relay.
func serve(t *testing.T, sample testmodel.Program) (path string, events chan session.Event) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "socket")
	listener, err := channel.ListenLocal(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, testserver.Run(t, listener, sample.Public, sample.Private, session.Terms{Scenario: session.EncryptedData})
}

// relayed is a connection that was introduced, for so many inferences in a minute.
func relayed(t *testing.T, path string, perMinute uint32) *channel.Channel {
	t.Helper()
	raw, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	introduction := binary.LittleEndian.AppendUint32(bytes.Clone(fingerprint), perMinute)
	if _, err := raw.Write(append(binary.LittleEndian.AppendUint64(introduction, 7), 0)); err != nil {
		t.Fatal(err)
	}
	return channel.Over(raw, patience)
}

func sample() []float64 {
	x := make([]float64, testmodel.Inputs)
	for i := range x {
		x[i] = math.Sin(float64(i))
	}
	return x
}

func TestOneSampleOfABatchIsPredicted(t *testing.T) {
	model := testmodel.New(2, 1)
	path, events := serve(t, model)
	evaluator, facts, err := browser.Open(relayed(t, path, 0), "", true)
	if err != nil {
		t.Fatal(err)
	}
	if facts.Size != testmodel.Inputs || facts.Model != "toy" || facts.Plan.Parameters.LogN < 12 || facts.Magnitude != 4 {
		t.Errorf("the facts are %+v", facts)
	}
	if _, err := evaluator.Prepare(); err != nil {
		t.Fatal(err)
	}
	scores, cost, err := evaluator.Predict(sample())
	if err != nil {
		t.Fatal(err)
	}
	for i, expected := range model.Run(sample()) {
		if math.Abs(scores[i]-expected) > 1e-3 {
			t.Errorf("output %d is %v, not %v", i, scores[i], expected)
		}
	}
	if len(scores) != testmodel.Outputs || cost.BytesSent == 0 {
		t.Errorf("%d scores, %d bytes sent", len(scores), cost.BytesSent)
	}
	if event := <-events; event.Kind != "prepared" || event.Peer != strings.Repeat("ab", 32) {
		t.Errorf("the server notified %q of %s", event.Kind, event.Peer)
	}
	if err := evaluator.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnotherProgramThanExpectedIsRefused(t *testing.T) {
	path, _ := serve(t, testmodel.New(2, 1))
	if _, _, err := browser.Open(relayed(t, path, 0), strings.Repeat("0", 64), true); err == nil {
		t.Error("another program was taken")
	}
}

// TestInferencesInAMinuteAreCountedOverSessions asks once in each of two sessions of a client that may ask once.
func TestInferencesInAMinuteAreCountedOverSessions(t *testing.T) {
	path, _ := serve(t, testmodel.New(1, 1))
	for round := range 2 {
		evaluator, _, err := browser.Open(relayed(t, path, 1), "", true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := evaluator.Prepare(); err != nil {
			t.Fatal(err)
		}
		_, _, err = evaluator.Predict(sample())
		var known *channel.Error
		if refused := errors.As(err, &known) && known.Family == channel.FamilyBusy; refused != (round == 1) {
			t.Errorf("inference %d: %v", round+1, err)
		}
	}
}

func TestAConnectionWithoutAnIntroductionEndsAlone(t *testing.T) {
	path, events := serve(t, testmodel.New(1, 1))
	raw, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Write([]byte("PRIVET")); err != nil {
		t.Fatal(err)
	}
	raw.Close()
	if event := <-events; event.Kind != "failed" {
		t.Errorf("the server notified %q", event.Kind)
	}
	if _, _, err := browser.Open(relayed(t, path, 0), "", true); err != nil {
		t.Error(err)
	}
}

func TestLightFloodingIsAcceptedOrRefused(t *testing.T) {
	path, _ := serve(t, testmodel.New(1, 1))
	if _, facts, err := browser.Open(relayed(t, path, 0), "", true); err != nil || facts.Statistical {
		t.Fatalf("%v, statistical: %v", err, facts.Statistical)
	}
	_, _, err := browser.Open(relayed(t, path, 0), "", false)
	var known *channel.Error
	if !errors.As(err, &known) || known.Family != channel.FamilyRefused || !strings.Contains(err.Error(), "floods its results lightly: accept that") {
		t.Errorf("%v", err)
	}
}
