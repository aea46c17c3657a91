// Package mail sends letters by email: links to set a password or confirm an address, and notices
// about changes to an account.
//
// A [Letter] is a row, written in the same transaction as the change that causes it. It contains
// its subject and recipient, but no secret. When the letter is sent, [Config].Write creates the
// link, so that neither the rows nor a copy of them reveal it.
//
// A [Post] takes due letters under a lease, which expires by itself. It passes them to a
// [Transport]: an SMTP server or, on a developer's machine, the [Box]. A letter that is not
// accepted is retried with growing delays for about a day, and then becomes a dead letter. If it is
// refused permanently, it becomes one immediately. Each letter is sent at least once. Its
// Message-ID stays the same, so that mail systems recognize duplicates.
package mail

import (
	"context"
	"time"
)

// A Kind is the purpose of a letter.
type Kind string

// The kinds of letters. The comments say which contain a link.
const (
	Reset           Kind = "reset_password"     // a link to set a new password
	Verify          Kind = "verify_address"     // a link to confirm the address
	Invitation      Kind = "invitation"         // a link to set the first password
	ChangeAddress   Kind = "change_address"     // a link, sent to the new address
	AddressChanged  Kind = "address_changed"    // a notice, sent to the old address
	AddressTaken    Kind = "address_taken"      // replaces ChangeAddress if another account has the new address
	Registration    Kind = "registration"       // a link to create the requested account
	Registered      Kind = "already_registered" // replaces Registration if the account already exists
	PasswordChanged Kind = "password_changed"
	PasswordSet     Kind = "password_set"   // a notice that an account with passkeys has its first password
	FactorChanged   Kind = "factor_changed" // a notice; the fact "what" names the change, see words.go
	NewDevice       Kind = "new_device"
	Test            Kind = "test"

	// Notices to operators about their accounts in the dashboard.
	OperatorDevice   Kind = "operator_new_device"
	OperatorFactor   Kind = "operator_factor_changed" // the fact "what" names the change, as in FactorChanged
	OperatorPassword Kind = "operator_password_changed"
	OperatorLink     Kind = "operator_link"  // someone created a password link, which the letter does not contain
	OperatorAdded    Kind = "operator_added" // sent to each owner; facts: "new" (the operator) and "role"
)

// A State is the state of a letter.
type State string

// The states of a letter.
const (
	Pending State = "pending"
	Sent    State = "sent"
	Kept    State = "kept" // stored in a [Box], for the developer
	Dead    State = "dead"
)

// A Letter is an email to be sent, or one that was sent. Its facts are deleted once it is sent.
type Letter struct {
	ID           string
	ProjectID    string // "" if the installation sends the letter
	SubscriberID string // "" if there is none, or if Write finds the subscriber by address
	Kind         Kind
	To           string
	// Facts are the contents of the letter, never a secret. The facts of notices include the origin
	// of the change: when, agent, address, by.
	Facts map[string]string

	State    State
	Created  time.Time
	Due      time.Time // the earliest time to send the letter; during an attempt, the end of the lease
	Attempts int       // number of attempts, including the one in progress
	Error    string    // the error of the last attempt
	Ended    time.Time // when the letter was sent or given up
}

// A Result is the outcome of an attempt. The rows of dropped letters are deleted.
type Result struct {
	ID      string
	State   State
	Dropped bool
	Error   string
	Due     time.Time // when the next attempt begins, if State is Pending
	Ended   time.Time // when the attempt ended, if it was the last one
}

// A Backlog counts the letters that are waiting, and those that were given up.
type Backlog struct {
	Waiting, Dead int
	Oldest        time.Time // when the oldest waiting letter was queued; zero if none is waiting
}

// A Queue keeps letters for all nodes. Its methods are safe for concurrent use.
type Queue interface {
	// TakeLetters returns at most the given number of due letters, oldest first, and counts an
	// attempt for each. It leases each letter to the caller, so that no other caller gets the
	// letter before the lease ends.
	TakeLetters(ctx context.Context, now, lease time.Time, most int) ([]Letter, error)
	// SettleLetter stores the outcome of an attempt. It leaves the letter unchanged if the letter
	// is no longer pending.
	SettleLetter(ctx context.Context, r Result) error
	// LetterBacklog returns the current backlog.
	LetterBacklog(ctx context.Context) (Backlog, error)
	// Clock returns the queue's time, which all nodes share.
	Clock(ctx context.Context) (time.Time, error)
}

// A Brand is how the sender appears in a letter.
type Brand struct {
	Name  string // the project's name
	Color string // "#rrggbb", or "" for the default
	Logo  Picture
}

// A Picture is attached to a letter, so that mail programs load nothing from the network. The zero
// value means no picture.
type Picture struct {
	PNG        []byte
	Wide, High int    // in CSS pixels
	Plate      string // the theme in which the picture needs a background, "l" or "d"
}

// A Draft is the content of a letter, without the words for its kind.
type Draft struct {
	Kind     Kind   // usually the Kind of the Letter, which AddressTaken and Registered replace
	Language string // a BCP 47 tag; English if unsupported
	To       string
	Brand    Brand
	Link     string // "" if the letter has no link
	Facts    map[string]string
}

// A Transport sends messages. If a message is refused permanently, [Refused] must be true for the
// error that Send returns.
type Transport interface {
	Send(ctx context.Context, m Message) error
}
