package channel

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a failure with the family that Privet's errors have everywhere: the name of a class in privet.errors. Said is the end of its
// text where that repeats what the peer has sent.
type Error struct {
	Family string
	Text   string
	Said   string
	cause  error
}

// Families of errors.
const (
	FamilyLink       = "LinkError"
	FamilyMisbehaved = "PeerMisbehaved"
	FamilyBusy       = "PeerBusy"
	FamilyRefused    = "NotAccepted"
	FamilyInput      = "InputError"
)

func (e *Error) Error() string { return e.Text + e.Said }

func (e *Error) Unwrap() error { return e.cause }

func linkError(format string, arguments ...any) error {
	err := fmt.Errorf(format, arguments...)
	return &Error{Family: FamilyLink, Text: err.Error(), cause: err}
}

func misbehaved(format string, arguments ...any) error {
	return Misbehaviour("the peer sent " + fmt.Sprintf(format, arguments...))
}

// Misbehaviour is what is wrong with something that came from the peer.
func Misbehaviour(text string) error {
	return &Error{Family: FamilyMisbehaved, Text: text}
}

// Unquoted is an error's text for logs and for third parties, without what the peer has sent.
func Unquoted(err error) string {
	var known *Error
	if !errors.As(err, &known) {
		return err.Error()
	}
	return strings.Replace(err.Error(), known.Said, "", 1)
}

func familyOf(reason Reason) string {
	switch reason {
	case Busy:
		return FamilyBusy
	case NotAllowed:
		return FamilyRefused
	case TimedOut:
		return FamilyLink
	}
	return FamilyMisbehaved
}
