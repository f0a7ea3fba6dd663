package session_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
	"privet/ckks/internal/testmodel"
	"privet/ckks/internal/testserver"
)

const patience = testserver.Patience

// serve starts a server of a program and gives its address, the directory of its certificates, and what it notified.
func serve(t *testing.T, sample testmodel.Program) (address, keys string, events chan session.Event) {
	t.Helper()
	return serveOn(t, sample.Public, sample.Private, session.Terms{Scenario: session.EncryptedData})
}

func serveOn(t *testing.T, public, private []byte, terms session.Terms) (address, keys string, events chan session.Event) {
	t.Helper()
	listener, keys := listen(t)
	return listener.Addr().String(), keys, testserver.Run(t, listener, public, private, terms)
}

// listen gives a port of a server, and the directory of its certificates and a client's.
func listen(t *testing.T) (listener *channel.Listener, keys string) {
	t.Helper()
	keys = t.TempDir()
	if err := testmodel.Certificates(keys); err != nil {
		t.Fatal(err)
	}
	credentials, err := channel.LoadCredentials(keys, "server")
	if err != nil {
		t.Fatal(err)
	}
	listener, err = channel.Listen("127.0.0.1:0", credentials)
	if err != nil {
		t.Fatal(err)
	}
	return listener, keys
}

func connect(t *testing.T, address, keys string) *channel.Channel {
	t.Helper()
	credentials, err := channel.LoadCredentials(keys, "client")
	if err != nil {
		t.Fatal(err)
	}
	link, err := channel.Dial(address, "127.0.0.1", credentials, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

func samples(seed uint64) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 9))
	made := make([][]float64, testmodel.Batch)
	for i := range made {
		made[i] = make([]float64, testmodel.Inputs)
		for k := range made[i] {
			made[i][k] = rng.Float64()*2 - 1
		}
	}
	return made
}

func TestPredictionsAreThoseOfTheModel(t *testing.T) {
	for _, degree := range []int{1, 2, 3, 7} {
		sample := testmodel.New(degree, uint64(degree))
		address, keys, events := serve(t, sample)
		client, err := session.Open(connect(t, address, keys), "")
		if err != nil {
			t.Fatal(err)
		}
		cost, err := client.Prepare()
		if err != nil {
			t.Fatal(err)
		}
		if need := client.Plan.Summary().OfflineBytes; cost.BytesSent < need || cost.BytesSent > need+1000 {
			t.Errorf("degree %d: %d bytes of keys were sent, %d planned", degree, cost.BytesSent, need)
		}
		for round := range 2 { // one set of keys serves any number of inferences
			inputs := samples(uint64(10*degree + round))
			outputs, _, err := client.Infer([][][]float64{inputs})
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range inputs {
				for k, expected := range sample.Run(x) {
					if math.Abs(outputs[0][i][k]-expected) > 1e-3 {
						t.Errorf("degree %d, sample %d, output %d: %v, not %v", degree, i, k, outputs[0][i][k], expected)
					}
				}
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"prepared", "inferred", "inferred"} {
			if event := <-events; event.Kind != kind {
				t.Errorf("the server notified %q (%v), not %q", event.Kind, event.Err, kind)
			}
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	address, keys, _ := serve(t, testmodel.New(2, 1))
	others := t.TempDir()
	if err := testmodel.Certificates(others); err != nil {
		t.Fatal(err)
	}
	stranger, err := channel.LoadCredentials(others, "client")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.Dial(address, "127.0.0.1", stranger, patience); err == nil {
		t.Error("a client of another authority was let in")
	}
	own, err := channel.LoadCredentials(keys, "client")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.Dial(address, "privet-dealer", own, patience); err == nil {
		t.Error("a server under another name was accepted")
	}
	swapped, err := channel.LoadCredentials(keys, "server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.Dial(address, "127.0.0.1", swapped, patience); err == nil {
		t.Error("a certificate for servers was accepted from a client")
	}
}

// TestGarbageEndsItsSessionOnly sends what no client sends, and sees that the next client is served.
func TestGarbageEndsItsSessionOnly(t *testing.T) {
	sample := testmodel.New(2, 1)
	address, keys, events := serve(t, sample)
	greeting := append([]byte("PRIVET"), 1, 0)
	for name, messages := range map[string][][]byte{
		"a wrong greeting":       {[]byte("PRIVATE!")},
		"another version":        {append([]byte("PRIVET"), 9, 0)},
		"no JSON":                {greeting, []byte("describe")},
		"an unknown request":     {greeting, []byte(`{"request":"weights"}`)},
		"an unknown field":       {greeting, []byte(`{"request":"describe","secret":true}`)},
		"a model by its name":    {greeting, []byte(`{"request":"describe","model":"other"}`)},
		"an unknown program":     {greeting, []byte(`{"request":"keys","program":"00"}`)},
		"data before keys":       {greeting, []byte(`{"request":"infer"}`)},
		"a request that is long": {greeting, make([]byte, 5000)},
	} {
		link := connect(t, address, keys)
		for _, message := range messages {
			if link.Send(message) != nil {
				break // the server has hung up on a message that is too long
			}
		}
		select {
		case event := <-events:
			if event.Kind != "failed" || event.Err == nil {
				t.Errorf("%s: the server notified %q", name, event.Kind)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the server noticed nothing", name)
		}
	}
	if _, err := session.Open(connect(t, address, keys), ""); err != nil {
		t.Errorf("after garbage: %v", err)
	}
}

func TestPlainTCPDelaysNobody(t *testing.T) {
	address, keys, _ := serve(t, testmodel.New(2, 1))
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := session.Open(connect(t, address, keys), ""); err != nil {
		t.Error(err)
	}
}

func TestAnotherProgramThanPinnedIsRefused(t *testing.T) {
	address, keys, _ := serve(t, testmodel.New(2, 1))
	_, err := session.Open(connect(t, address, keys), strings.Repeat("0", 64))
	var known *channel.Error
	if !errors.As(err, &known) || known.Family != channel.FamilyMisbehaved {
		t.Errorf("%v", err)
	}
}

func TestInputsThatTheProgramWasNotCompiledForAreRefused(t *testing.T) {
	address, keys, _ := serve(t, testmodel.New(2, 1))
	client, err := session.Open(connect(t, address, keys), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Infer([][][]float64{samples(1)}); err == nil {
		t.Error("data was sent before keys")
	}
	if _, err := client.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, value := range []float64{5, -5, math.NaN(), math.Inf(1)} {
		inputs := samples(1)
		inputs[1][3] = value
		if _, _, err := client.Infer([][][]float64{inputs}); err == nil {
			t.Errorf("an input of %v was encrypted", value)
		}
	}
	if _, _, err := client.Infer([][][]float64{samples(1)}); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

func TestAProgramThatDoesNotFitIsRefusedWithTheFigure(t *testing.T) {
	sample := testmodel.New(2, 1)
	_, err := session.Serve(sample.Public, sample.Private, session.Terms{Scenario: session.EncryptedData}, 1<<20)
	if err == nil || !strings.Contains(err.Error(), "MB, more than the limit of 1 MB") {
		t.Errorf("%v", err)
	}
}
