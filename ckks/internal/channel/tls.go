//go:build !js

package channel

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// protocol is the application protocol that both sides insist on.
const protocol = "privet-ckks/1"

// HandshakeTimeout bounds connecting and the TLS handshake.
const HandshakeTimeout = 10 * time.Second

// Credentials are a party's certificate and key, and the authority that it trusts.
type Credentials struct {
	certificate tls.Certificate
	trust       *x509.CertPool
}

// LoadCredentials reads ROLE.pem, ROLE.key and ca.pem from the directory that `privet keys` wrote.
func LoadCredentials(directory, role string) (*Credentials, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(directory, role+".pem"), filepath.Join(directory, role+".key"))
	if err != nil {
		return nil, fmt.Errorf("the certificate of the %s cannot be used (%w): `privet keys DIR` makes certificates for a first try", role, err)
	}
	authority, err := os.ReadFile(filepath.Join(directory, "ca.pem"))
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate cannot be read: %w", err)
	}
	trust, err := authorities(authority)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(directory, "ca.pem"), err)
	}
	return &Credentials{pair, trust}, nil
}

// authorities reads the certificates that peers' certificates may be issued by. One that is not of an authority is refused:
// crypto/tls takes an anchor's name and key and asks no more of a root, so whoever has that key could issue certificates for
// any name.
func authorities(text []byte) (*x509.CertPool, error) {
	trust, count := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", count, err)
		}
		if !certificate.BasicConstraintsValid || !certificate.IsCA {
			return nil, fmt.Errorf("certificate %d is not a certificate authority: give that of the authority that issued it", count)
		}
		if certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0 {
			return nil, fmt.Errorf("the key of certificate %d may not sign certificates: give that of the authority that issued it", count)
		}
		trust.AddCert(certificate)
	}
	if count == 0 {
		return nil, errors.New("it holds no certificate")
	}
	return trust, nil
}

func (c *Credentials) config() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{c.certificate},
		RootCAs:                c.trust,
		ClientCAs:              c.trust,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true,
	}
}

// Listener accepts connections of parties with a certificate of the trusted authority.
type Listener struct {
	net.Listener
	// config is nil for a listener of ListenLocal.
	config *tls.Config
}

// Listen listens at an address.
func Listen(address string, credentials *Credentials) (*Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Listener{listener, credentials.config()}, nil
}

// Serve serves peers on goroutines of their own, at most so many at a time, until the listener is closed; then `closed` is called,
// and those that are being served are waited for. Further peers wait in the system's queue. `refused` hears of those whose handshake
// failed.
func (l *Listener) Serve(most int, timeout time.Duration, serve func(*Channel), refused func(address string, err error), closed func()) error {
	slots := make(chan struct{}, most)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer closed()
	for {
		slots <- struct{}{}
		raw, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		sessions.Go(func() {
			defer func() { <-slots }()
			c, err := l.Handshake(raw, timeout)
			if err != nil {
				refused(raw.RemoteAddr().String(), err)
				return
			}
			defer c.Close()
			serve(c)
		})
	}
}

// Handshake runs TLS on an accepted connection; it belongs on a goroutine of its own, so that a silent client delays no
// other.
func (l *Listener) Handshake(raw net.Conn, timeout time.Duration) (*Channel, error) {
	if l.config == nil {
		return introduced(raw, timeout)
	}
	connection := tls.Server(raw, l.config)
	if err := handshake(connection); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	made := certified(connection, timeout)
	// A client of TLS 1.3 is done before the server has seen its certificate; this byte tells it that it was accepted.
	if _, err := connection.Write([]byte{1}); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return made, nil
}

// Dial connects to a server whose certificate must be for the name.
func Dial(address, name string, credentials *Credentials, timeout time.Duration) (*Channel, error) {
	raw, err := net.DialTimeout("tcp", address, HandshakeTimeout)
	if err != nil {
		return nil, linkError("the server at %s cannot be reached: %w", address, err)
	}
	config := credentials.config()
	config.ServerName = name
	connection := tls.Client(raw, config)
	if err := handshake(connection); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	made := certified(connection, timeout)
	var accepted [1]byte
	if err := made.readFull(accepted[:], time.Now().Add(HandshakeTimeout)); err != nil {
		return nil, errors.Join(linkError("the server at %s refused this client's certificate: %w", address, err), raw.Close())
	}
	return made, nil
}

func handshake(connection *tls.Conn) error {
	limit, cancel := context.WithTimeout(context.Background(), HandshakeTimeout)
	defer cancel()
	if err := connection.HandshakeContext(limit); err != nil {
		return linkError("the TLS handshake failed: %w", err)
	}
	if connection.ConnectionState().NegotiatedProtocol != protocol {
		return linkError("the peer does not speak %s", protocol)
	}
	return nil
}

// certified is a channel whose peer its certificate names.
func certified(connection *tls.Conn, timeout time.Duration) *Channel {
	made := Over(connection, timeout)
	certificate := connection.ConnectionState().PeerCertificates[0]
	digest := sha256.Sum256(certificate.Raw)
	made.peer, made.name = hex.EncodeToString(digest[:]), commonName(certificate)
	return made
}

// commonName is the first common name in a certificate, as the other parts of Privet read it: crypto/x509 gives the last.
func commonName(certificate *x509.Certificate) string {
	for _, attribute := range certificate.Subject.Names {
		if attribute.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 3}) {
			name, _ := attribute.Value.(string)
			return name
		}
	}
	return ""
}
