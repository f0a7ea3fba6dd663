package cohort

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/wire"
)

// signKey is a client's statement about its own public key, under which results are handed out.
func signKey(own *channel.Credentials, s *Setup, cohort, client *rlwe.PublicKey) ([]byte, error) {
	message, err := json.Marshal(s.keysChecked(cohort, client))
	if err != nil {
		return nil, err
	}
	return own.Sign(purposeClient, message)
}

// forging is a coordinator that makes sums of shares and relays members' words as it likes.
type forging struct {
	sums func(member int, public, first []byte) ([]byte, []byte)
	said func(round, member int, statements [][]byte) [][]byte
}

// run goes as far as the comparison of sums, and gives what each member makes of it.
func (f forging) run(t *testing.T, s stage) []string {
	t.Helper()
	members := s.setup.Members
	results := make([]chan string, members)
	for index := range members {
		results[index] = make(chan string, 1)
		go func() {
			role := fmt.Sprintf("member-%d", index)
			link := s.dial(t, role)
			defer link.Close()
			err := introduce(link, s.setup.hello(roleMember, index))
			var m *collective.Member
			if err == nil {
				m, err = join(link, s.setup)
			}
			if err == nil {
				_, err = makeKeys(link, s.credentials(t, role), s.setup, index, m)
			}
			if err == nil {
				results[index] <- "agrees"
			} else {
				results[index] <- err.Error()
			}
		}()
	}
	s.come(t, s.setup.hello(roleClient, 0), nil)
	run := s.accept(t, patience)
	h := &hub{setup: s.setup, members: run.members, client: run.client}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.relay(t, s, h)
		run.end(fmt.Errorf("the test closes the connections"))
	}()
	var found []string
	for _, result := range results {
		found = append(found, <-result)
	}
	<-done
	return found
}

// relay does what hub.keys does, with lies, for a client of its own; it stops when members go.
func (f forging) relay(t *testing.T, s stage, h *hub) {
	contributions, err := h.gather(collective.ContributionBytes)
	if err != nil || h.broadcast(slices.Concat(contributions...)) != nil {
		return
	}
	common, err := collective.NewCommon(contributions)
	if err != nil {
		return
	}
	h.sums = collective.NewCoordinator(h.setup.Params, common, len(h.members))
	shares, err := h.gather(h.sums.Sizes().PublicKey)
	if err != nil {
		return
	}
	key, err := h.sums.PublicKey(shares)
	if err != nil {
		return
	}
	if shares, err = h.gather(h.sums.Sizes().First); err != nil {
		return
	}
	first, err := h.sums.RelinearisationFirst(shares)
	if err != nil {
		return
	}
	public := wire.AppendQP(nil, h.setup.Params, key.Value[0])
	for member, link := range h.members {
		one, two := public, first
		if f.sums != nil {
			one, two = f.sums(member, slices.Clone(public), slices.Clone(first))
		}
		if link.Send(one) != nil || link.Send(two) != nil {
			return
		}
	}
	for round := range 2 {
		gathered, err := h.collect(func(link *channel.Channel) ([]byte, error) { return link.ReceiveUpTo(channel.MaxStatement) })
		if err != nil {
			return
		}
		for member, link := range h.members {
			statements := slices.Clone(gathered)
			if f.said != nil {
				statements = f.said(round, member, statements)
			}
			text, err := json.Marshal(statements)
			if err != nil || link.Send(text) != nil {
				return
			}
		}
	}
	_, client := rlwe.NewKeyGenerator(h.setup.Params).GenKeyPairNew()
	signed, err := signKey(s.credentials(t, "client"), h.setup, key, client)
	if err != nil {
		return
	}
	for _, message := range [][]byte{wire.AppendQP(nil, h.setup.Params, client.Value...), signed} {
		if h.broadcast(message) != nil {
			return
		}
	}
	for _, size := range []func(*channel.Channel) ([]byte, error){
		func(link *channel.Channel) ([]byte, error) { return link.ReceiveUpTo(channel.MaxStatement) },
		func(link *channel.Channel) ([]byte, error) { return link.Receive(h.sums.Sizes().Second) },
	} {
		if _, err := h.collect(size); err != nil {
			return
		}
	}
	for _, slots := range h.setup.rotations() {
		if _, err := h.gather(h.sums.RotationSize(h.setup.Plan.Rotations[slots])); err != nil {
			return
		}
	}
}

// TestACoordinatorCannotForgeSums lies in each message between the rounds. The first case, without a lie, is the control.
func TestACoordinatorCannotForgeSums(t *testing.T) {
	forge := func(data []byte) []byte { clear(data[:len(data)/2]); return data }
	for name, c := range map[string]struct {
		forging
		expected string
	}{
		"the truth": {forging{}, "agrees"},
		"one forged sum for all": {forging{sums: func(_ int, public, first []byte) ([]byte, []byte) {
			return public, forge(first)
		}}, "not those of the members' shares"},
		"a forged public key": {forging{sums: func(_ int, public, first []byte) ([]byte, []byte) {
			return forge(public), first
		}}, "not those of the members' shares"},
		"other sums for one member": {forging{sums: func(member int, public, first []byte) ([]byte, []byte) {
			if member == 1 {
				first = forge(first)
			}
			return public, first
		}}, "other sums of shares than this member"},
		"another's words twice": {forging{said: func(_, member int, said [][]byte) [][]byte {
			said[1-member] = said[member]
			return said
		}}, "is signed by"},
		"words of the round before": {forging{said: func() func(int, int, [][]byte) [][]byte {
			var before [][]byte
			return func(round, member int, said [][]byte) [][]byte {
				if round == 0 {
					before = said
					return said
				}
				said[1-member] = before[1-member]
				return said
			}
		}()}, "not signed by who it names"},
	} {
		for member, found := range c.run(t, newStage(t, shallow(2), 2)) {
			if !strings.Contains(found, c.expected) {
				t.Errorf("%s: member %d: %s", name, member, found)
			}
		}
	}
}

// TestAClientEncryptsForNoOtherClient has members vouch for the key of another client, whom the coordinator may work with: what this
// one encrypts would be handed out to that one.
func TestAClientEncryptsForNoOtherClient(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	cohort, client, other := rlwe.NewPublicKey(s.setup.Params), rlwe.NewPublicKey(s.setup.Params), rlwe.NewPublicKey(s.setup.Params)
	cohort.Value[0].Q.Coeffs[0][0], client.Value[0].Q.Coeffs[0][0], other.Value[0].Q.Coeffs[0][0] = 1, 2, 3
	for name, c := range map[string]struct {
		keys     [2][2]*rlwe.PublicKey
		accepted bool
	}{
		"both keys, of all members":          {[2][2]*rlwe.PublicKey{{cohort, client}, {cohort, client}}, true},
		"another client's, of all members":   {[2][2]*rlwe.PublicKey{{cohort, other}, {cohort, other}}, false},
		"another client's, of one member":    {[2][2]*rlwe.PublicKey{{cohort, client}, {cohort, other}}, false},
		"another cohort's, of all members":   {[2][2]*rlwe.PublicKey{{other, client}, {other, client}}, false},
		"the client's in the cohort's place": {[2][2]*rlwe.PublicKey{{client, cohort}, {client, cohort}}, false},
	} {
		var vouchers [][]byte
		for member, keys := range c.keys {
			message, err := json.Marshal(s.setup.keysChecked(keys[0], keys[1]))
			if err != nil {
				t.Fatal(err)
			}
			voucher, err := s.credentials(t, fmt.Sprintf("member-%d", member)).Sign(purposeKey, message)
			if err != nil {
				t.Fatal(err)
			}
			vouchers = append(vouchers, voucher)
		}
		text, err := json.Marshal(vouchers)
		if err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		go func() { _ = channel.Over(there, patience).Send(text) }()
		err = checkVouchers(channel.Over(here, patience), s.credentials(t, "client"), s.setup, cohort, client)
		if (err == nil) != c.accepted {
			t.Errorf("%s: %v", name, err)
		}
		here.Close()
		there.Close()
	}
}

// TestOnlyAClientsKeyGetsResults has a coordinator hand members a public key of its own.
func TestOnlyAClientsKeyGetsResults(t *testing.T) {
	s := newStage(t, shallow(2), 2)
	cohort, client := rlwe.NewPublicKey(s.setup.Params), rlwe.NewPublicKey(s.setup.Params)
	cohort.Value[0].Q.Coeffs[0][0], client.Value[0].Q.Coeffs[0][0] = 1, 2
	member := s.credentials(t, "member-0")
	for name, c := range map[string]struct {
		role          string
		key, intended *rlwe.PublicKey
		accepted      bool
	}{
		"the client's":                     {"client", cohort, client, true},
		"another than the client signed":   {"client", cohort, cohort, false},
		"one that a client signed earlier": {"client", client, client, false},
		"signed by a member":               {"member-1", cohort, client, false},
	} {
		signed, err := signKey(s.credentials(t, c.role), s.setup, c.key, c.intended)
		if err != nil {
			t.Fatal(err)
		}
		err = checkSigned(signed, member, s.setup, "the coordinator's", cohort, client)
		if (err == nil) != c.accepted {
			t.Errorf("%s: %v", name, err)
		}
	}
	signed, err := signKey(s.credentials(t, "client"), s.setup, cohort, client)
	if err != nil {
		t.Fatal(err)
	}
	_, signer, err := member.Verify(purposeClient, signed)
	if err != nil {
		t.Fatal(err)
	}
	if checkSigned(signed, member, s.setup, signer.Fingerprint, cohort, client) == nil {
		t.Error("a key that the coordinator signed was accepted")
	}
}
