package channel

import "fmt"

// Error is a failure with the family that Privet's errors have everywhere: the name of a class in privet.errors.
type Error struct {
	Family string
	Text   string
	cause  error
}

// Families of errors.
const (
	FamilyLink       = "LinkError"
	FamilyMisbehaved = "PeerMisbehaved"
	FamilyBusy       = "PeerBusy"
	FamilyRefused    = "NotAccepted"
)

func (e *Error) Error() string { return e.Text }

func (e *Error) Unwrap() error { return e.cause }

func linkError(format string, arguments ...any) error {
	err := fmt.Errorf(format, arguments...)
	return &Error{FamilyLink, err.Error(), err}
}

func misbehaved(format string, arguments ...any) error {
	return Misbehaviour("the peer sent " + fmt.Sprintf(format, arguments...))
}

// Misbehaviour is what is wrong with something that came from the peer.
func Misbehaviour(text string) error {
	return &Error{Family: FamilyMisbehaved, Text: text}
}

func familyOf(reason Reason) string {
	switch reason {
	case Busy:
		return FamilyBusy
	case NotAllowed:
		return FamilyRefused
	}
	return FamilyMisbehaved
}
