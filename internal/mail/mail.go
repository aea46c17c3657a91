// Package mail sends letters to people: links to set a password or confirm an address, and notices
// about changes to their account.
//
// A [Letter] is a row, written in the same transaction as the change that causes it. It holds its
// subject and recipient, but no secret. [Config].Write makes the link when the letter is sent, so
// that reading the rows, or a copy of them, does not reveal it.
//
// A [Post] takes due letters under a lease, which expires by itself. It passes them to a
// [Transport]: an SMTP server, or the [Box] that replaces one on a developer's machine. A letter
// that is not accepted is retried with growing delays for about a day, and then becomes a dead
// letter. So each letter is sent at least once. Its Message-ID stays the same, so that mail systems
// recognize repetitions.
package mail

import (
	"context"
	"time"
)

// A Kind is what a letter is about.
type Kind string

// The kinds of letters. Those with a link are marked.
const (
	Reset           Kind = "reset_password"     // a link to set a new password
	Verify          Kind = "verify_address"     // a link to confirm the address
	Invitation      Kind = "invitation"         // a link to set the first password
	ChangeAddress   Kind = "change_address"     // a link, sent to the new address
	AddressChanged  Kind = "address_changed"    // sent to the old address
	AddressTaken    Kind = "address_taken"      // instead of a link, if another account has the new address
	Registration    Kind = "registration"       // a link to create the requested account
	Registered      Kind = "already_registered" // instead, if the account exists
	PasswordChanged Kind = "password_changed"
	PasswordSet     Kind = "password_set"   // the first password of an account with passkeys
	FactorChanged   Kind = "factor_changed" // the fact "what" is the change: see words.go
	NewDevice       Kind = "new_device"
	Test            Kind = "test"

	// To operators, about the dashboard.
	OperatorDevice   Kind = "operator_new_device"
	OperatorFactor   Kind = "operator_factor_changed" // "what" as for FactorChanged
	OperatorPassword Kind = "operator_password_changed"
	OperatorLink     Kind = "operator_link"  // someone created a link for a new password; not in the letter
	OperatorAdded    Kind = "operator_added" // to each owner: "new" is the new operator, with "role"
)

// A State is the state of a letter.
type State string

// The states.
const (
	Pending State = "pending"
	Sent    State = "sent"
	Kept    State = "kept" // by a [Box], for the developer
	Dead    State = "dead"
)

// A Letter is a mail that is to be sent, or was sent. Its facts are deleted once it is sent.
type Letter struct {
	ID           string
	ProjectID    string // "" for a letter of the installation
	SubscriberID string // "" if there is none, or if Write finds it by the address
	Kind         Kind
	To           string
	// Facts are the contents of the letter, never a secret. Those of notices include their
	// origin: when, agent, address, by.
	Facts map[string]string

	State    State
	Created  time.Time
	Due      time.Time // the earliest time to send; during an attempt, the end of the lease
	Attempts int       // including a running one
	Error    string    // of the last attempt
	Ended    time.Time // when it was sent or given up
}

// A Result is the outcome of an attempt. Dropped letters leave no row.
type Result struct {
	ID      string
	State   State
	Dropped bool
	Error   string
	Due     time.Time // the next attempt, if State is Pending
	Ended   time.Time // otherwise
}

// A Backlog is how many letters wait, since when, and how many were given up.
type Backlog struct {
	Waiting, Dead int
	Oldest        time.Time // zero if nothing waits
}

// A Queue keeps letters for all nodes. Its methods may be called concurrently.
type Queue interface {
	// TakeLetters returns due letters, the oldest first, and counts an attempt for each. Each
	// letter is returned to one caller only, until its lease ends.
	TakeLetters(ctx context.Context, now, lease time.Time, most int) ([]Letter, error)
	// SettleLetter stores the outcome of an attempt. It does not change a letter that is no
	// longer waiting.
	SettleLetter(ctx context.Context, r Result) error
	// LetterBacklog returns the backlog.
	LetterBacklog(ctx context.Context) (Backlog, error)
}

// A Brand is the sender that a letter shows.
type Brand struct {
	Name  string // the project's name
	Color string // "#rrggbb", or "" for the default
	Logo  Picture
}

// A Picture is attached to a letter, so that reading the letter fetches nothing. The zero value
// means no picture.
type Picture struct {
	PNG        []byte
	Wide, High int    // in CSS pixels
	Plate      string // "l" or "d": the theme in which it needs a background
}

// A Draft is the content of a letter besides the words of its kind.
type Draft struct {
	Kind     Kind   // may differ from the letter's
	Language string // a BCP 47 tag; English if unsupported
	To       string
	Brand    Brand
	Link     string // "" for none
	Facts    map[string]string
}

// A Transport sends messages. It must not hide [Refused] errors.
type Transport interface {
	Send(ctx context.Context, m Message) error
}
