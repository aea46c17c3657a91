// Package mail sends letters to people: links by which they set a password or show
// that an address is theirs, and notices of what has happened to their account.
//
// A [Letter] is a row, written with what causes it. It says what it is about and to
// whom, and holds no secret: the link in it is made when it is sent, by who knows what
// it opens (see [Config].Write), so that nobody who reads the rows, or a copy of them,
// can use it. A [Post] takes letters that are due, by a lease that ends by itself, and
// gives them to a [Transport]: an SMTP server, or the [Box] that stands in for one on
// the machine of a developer. What is not taken is tried again, less and less often, for about a
// day, and is then a dead letter. So each letter is sent at least once; it has the same
// Message-ID each time, by which mail systems know it again.
package mail

import (
	"context"
	"time"
)

// A Kind says what a letter is about.
type Kind string

// The kinds. Those that end in a link say so.
const (
	Reset           Kind = "reset_password"     // a link to set a new password
	Verify          Kind = "verify_address"     // a link to show that the address is one's own
	Invitation      Kind = "invitation"         // a link to set the first password
	ChangeAddress   Kind = "change_address"     // a link, to the new address
	AddressChanged  Kind = "address_changed"    // to the old one
	AddressTaken    Kind = "address_taken"      // instead of a link, where another account has the new one
	Registration    Kind = "registration"       // a link to make the account that was asked for
	Registered      Kind = "already_registered" // instead, where there is one
	PasswordChanged Kind = "password_changed"
	PasswordSet     Kind = "password_set"   // the first, of an account that had passkeys
	FactorChanged   Kind = "factor_changed" // "what" says which, and what became of it: see the words
	NewDevice       Kind = "new_device"
	Test            Kind = "test"

	// To operators, about the dashboard.
	OperatorDevice   Kind = "operator_new_device"
	OperatorFactor   Kind = "operator_factor_changed" // "what" as of FactorChanged
	OperatorPassword Kind = "operator_password_changed"
	OperatorLink     Kind = "operator_link"  // somebody made a link for a new password; it is not in it
	OperatorAdded    Kind = "operator_added" // to each owner: "new" is one, as "role"
)

// A State is what became of a letter.
type State string

// The states.
const (
	Pending State = "pending"
	Sent    State = "sent"
	Kept    State = "kept" // by a [Box], for the developer alone
	Dead    State = "dead"
)

// A Letter is a mail that is to be sent, or was. Facts go once it is sent.
type Letter struct {
	ID           string
	ProjectID    string // "" for one of the installation
	SubscriberID string // "" where it is found by the address, or there is none
	Kind         Kind
	To           string
	Facts        map[string]string // what it tells; never a secret. Of notices also where they come from: when, agent, address, by
	State        State
	Created      time.Time
	Due          time.Time // not before; of one that is being sent, the end of the lease
	Attempts     int       // with the one that is under way
	Error        string    // why the last did not work
	Ended        time.Time // when it was sent or given up
}

// A Result is what an attempt came to. Dropped letters leave no row.
type Result struct {
	ID      string
	State   State
	Dropped bool
	Error   string
	Due     time.Time // of the next attempt, if it is pending
	Ended   time.Time // else
}

// A Backlog is how much waits, since when, and how much was given up.
type Backlog struct {
	Waiting, Dead int
	Oldest        time.Time // zero if nothing waits
}

// A Queue keeps letters, for all nodes. All methods may be called at once.
type Queue interface {
	// TakeLetters returns letters that are due, the oldest first, each to one caller
	// alone until the lease ends, and counts an attempt.
	TakeLetters(ctx context.Context, now, lease time.Time, most int) ([]Letter, error)
	// SettleLetter writes what an attempt came to; a letter that waits no more stays as
	// it is.
	SettleLetter(ctx context.Context, r Result) error
	// LetterBacklog counts.
	LetterBacklog(ctx context.Context) (Backlog, error)
}

// A Brand is in whose name a letter is.
type Brand struct {
	Name  string // of the project
	Color string // "#rrggbb", or "" for ours
	Logo  Picture
}

// A Picture goes along with a letter, so that nothing is fetched by who reads it. The zero
// value is none.
type Picture struct {
	PNG        []byte
	Wide, High int    // as it is shown
	Plate      string // "l" or "d": it needs a ground behind it in the light, or in the dark
}

// A Draft is what a letter says, as far as it is not the words of its kind.
type Draft struct {
	Kind     Kind   // may be another than the letter's
	Language string // a tag of BCP 47; one that there is not is English
	To       string
	Brand    Brand
	Link     string // "" for none
	Facts    map[string]string
}

// A Transport takes messages. An error that is [Refused] stays one.
type Transport interface {
	Send(ctx context.Context, m Message) error
}
