package cohort

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/wire"
)

// Members and the client have connections to the coordinator alone. What they must know of each other goes through it in
// statements that are signed with the keys of their certificates, which it cannot forge.
const (
	purposeSums   = "cohort: sums that a member got"
	purposeShares = "cohort: projection of a member's shares"
	purposeKey    = "cohort: public key that a member checked"
	purposeClient = "cohort: public key of the client"
	digestBytes   = sha256.Size
)

// sumsGot is what a member says of the sums that it got. The nonces of all members make the challenge.
type sumsGot struct {
	Program string `json:"program"`
	Members int    `json:"members"`
	Digest  []byte `json:"digest"`
	Nonce   []byte `json:"nonce"`
}

// sharesProjected is what a member says of its own shares under a challenge.
type sharesProjected struct {
	Challenge  []byte `json:"challenge"`
	Projection []byte `json:"projection"`
}

// keyChecked names a public key: a member's statement about the cohort's (Key), and a client's about its own and the cohort's that
// it encrypts under.
type keyChecked struct {
	Program string `json:"program"`
	Key     []byte `json:"key"`
	Own     []byte `json:"own,omitempty"`
}

// compareSums has a member compare with all others the sums that the coordinator sent. Only then are they used.
func compareSums(c *channel.Channel, own *channel.Credentials, s *Setup, index int, m *collective.Member) error {
	public, err := c.Receive(wire.QPBytes(s.Params, 1))
	if err != nil {
		return err
	}
	first, err := c.Receive(collective.NewCoordinator(s.Params, nil, s.Members).Sizes().First)
	if err != nil {
		return err
	}
	if err := m.TakeSums(public, first); err != nil {
		return err
	}
	digest, nonce := m.SumsDigest(), make([]byte, digestBytes)
	if _, err := rand.Read(nonce); err != nil {
		return err
	}
	said, err := exchange(c, own, s, index, purposeSums, sumsGot{s.Program.Hash, s.Members, digest[:], nonce})
	if err != nil {
		return err
	}
	hash := sha256.New()
	for member, message := range said {
		var got sumsGot
		if err := json.Unmarshal(message, &got); err != nil || len(got.Nonce) != digestBytes {
			return channel.Misbehaviour(fmt.Sprintf("member %d's statement on the sums has the wrong form", member))
		}
		if got.Program != s.Program.Hash || got.Members != s.Members || !bytes.Equal(got.Digest, digest[:]) {
			return channel.Misbehaviour(fmt.Sprintf("the coordinator sent member %d other sums of shares than this member", member))
		}
		if member == index && !bytes.Equal(got.Nonce, nonce) {
			return channel.Misbehaviour("the coordinator repeats an earlier statement of this member")
		}
		hash.Write(got.Nonce)
	}
	challenge := [sha256.Size]byte(hash.Sum(nil))
	projection, err := m.ProjectShares(challenge)
	if err != nil {
		return err
	}
	if said, err = exchange(c, own, s, index, purposeShares, sharesProjected{challenge[:], projection}); err != nil {
		return err
	}
	var projections [][]byte
	for member, message := range said {
		var got sharesProjected
		if err := json.Unmarshal(message, &got); err != nil || !bytes.Equal(got.Challenge, challenge[:]) {
			return channel.Misbehaviour(fmt.Sprintf("member %d's statement on its shares is not about this run", member))
		}
		projections = append(projections, got.Projection)
	}
	if err := m.CheckSums(challenge, projections); err != nil {
		return channel.Misbehaviour(err.Error())
	}
	return vouch(c, own, s, m)
}

// exchange sends all members a statement, through the coordinator, and gives what each of them sent, in the order of members.
func exchange(c *channel.Channel, own *channel.Credentials, s *Setup, index int, purpose string, content any) ([][]byte, error) {
	message, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	mine, err := own.Sign(purpose, message)
	if err != nil {
		return nil, err
	}
	if err := c.Send(mine); err != nil {
		return nil, err
	}
	said, err := receiveStatements(c, own, s, purpose)
	if err == nil && !bytes.Equal(said[index], message) {
		err = channel.Misbehaviour("the coordinator changed what this member said to the others")
	}
	return said, err
}

// receiveStatements reads one statement of each member, in order.
func receiveStatements(c *channel.Channel, own *channel.Credentials, s *Setup, purpose string) ([][]byte, error) {
	data, err := c.ReceiveUpTo(2 * s.Members * channel.MaxStatement)
	if err != nil {
		return nil, err
	}
	var statements [][]byte
	if json.Unmarshal(data, &statements) != nil || len(statements) != s.Members {
		return nil, channel.Misbehaviour("the statements of members have the wrong form")
	}
	said := make([][]byte, s.Members)
	for member, statement := range statements {
		message, signer, err := own.Verify(purpose, statement)
		if err != nil {
			return nil, err
		}
		if signer.Name != memberName(member) {
			return nil, channel.Misbehaviour(fmt.Sprintf("a statement of member %d is signed by %q", member, signer.Name))
		}
		said[member] = message
	}
	return said, nil
}

func memberName(member int) string { return fmt.Sprintf("privet member %d", member) }

// vouch tells the client, which the coordinator passes it on to, which public key this member has checked.
func vouch(c *channel.Channel, own *channel.Credentials, s *Setup, m *collective.Member) error {
	key, err := m.CohortKey()
	if err != nil {
		return err
	}
	digest := collective.PublicKeyDigest(s.Params, key)
	message, err := json.Marshal(keyChecked{Program: s.Program.Hash, Key: digest[:]})
	if err != nil {
		return err
	}
	statement, err := own.Sign(purposeKey, message)
	if err != nil {
		return err
	}
	return c.Send(statement)
}

// checkVouchers has a client check that all members vouch for the public key that the coordinator sent.
func checkVouchers(c *channel.Channel, own *channel.Credentials, s *Setup, key *rlwe.PublicKey) error {
	said, err := receiveStatements(c, own, s, purposeKey)
	if err != nil {
		return err
	}
	digest := collective.PublicKeyDigest(s.Params, key)
	for member, message := range said {
		var got keyChecked
		if json.Unmarshal(message, &got) != nil || got.Program != s.Program.Hash || !bytes.Equal(got.Key, digest[:]) {
			return channel.Misbehaviour(fmt.Sprintf("member %d does not vouch for the public key that the coordinator sent", member))
		}
	}
	return nil
}

// signKey is a client's statement about its own public key, under which results are handed out.
func signKey(own *channel.Credentials, s *Setup, cohort, client *rlwe.PublicKey) ([]byte, error) {
	key, mine := collective.PublicKeyDigest(s.Params, cohort), collective.PublicKeyDigest(s.Params, client)
	message, err := json.Marshal(keyChecked{Program: s.Program.Hash, Key: key[:], Own: mine[:]})
	if err != nil {
		return nil, err
	}
	return own.Sign(purposeClient, message)
}

// checkClient has a member check that a public key is that of a client of this run, and not the coordinator's own.
func checkClient(c *channel.Channel, own *channel.Credentials, s *Setup, m *collective.Member, client *rlwe.PublicKey) error {
	data, err := c.ReceiveUpTo(channel.MaxStatement)
	if err != nil {
		return err
	}
	cohort, err := m.CohortKey()
	if err != nil {
		return err
	}
	return checkSigned(data, own, s, c.Peer(), cohort, client)
}

// checkSigned checks a client's statement about its key; the coordinator is known by its fingerprint.
func checkSigned(data []byte, own *channel.Credentials, s *Setup, coordinator string, cohort, client *rlwe.PublicKey) error {
	message, signer, err := own.Verify(purposeClient, data)
	if err != nil {
		return err
	}
	for member := range s.Members {
		if signer.Name == memberName(member) {
			return channel.Misbehaviour(fmt.Sprintf("member %d signed the client's public key", member))
		}
	}
	if signer.Fingerprint == coordinator {
		return channel.Misbehaviour("the coordinator signed the client's public key: it would read the results itself")
	}
	key, theirs := collective.PublicKeyDigest(s.Params, cohort), collective.PublicKeyDigest(s.Params, client)
	var got keyChecked
	if json.Unmarshal(message, &got) != nil || got.Program != s.Program.Hash ||
		!bytes.Equal(got.Key, key[:]) || !bytes.Equal(got.Own, theirs[:]) {
		return channel.Misbehaviour("the client's public key is not the one that the client signed for this run")
	}
	return nil
}
