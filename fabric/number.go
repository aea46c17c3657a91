package fabric

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// PhoneNumbers manages the phone numbers of projects. SIP gateways deliver calls to them. [Routes]
// assigns them to resources.
type PhoneNumbers struct {
	*core
	store     NumberStore
	addresses *Addresses
}

// A NumberStore keeps phone numbers; see [Stores].
type NumberStore interface {
	// CreateNumber returns problem.Conflict with the parameter number if any project has the number.
	CreateNumber(ctx context.Context, n PhoneNumber) error
	FindNumber(ctx context.Context, projectID, id string) (PhoneNumber, error)
	// FindNumberByDigits finds a phone number of any project. number is in E.164 format.
	FindNumberByDigits(ctx context.Context, number string) (PhoneNumber, error)
	ListNumbers(ctx context.Context, projectID string, q page.Query) (page.Page[PhoneNumber], error)
	// DeleteNumber also deletes the number's routes.
	DeleteNumber(ctx context.Context, projectID, id string) error
}

// A PhoneNumber is a phone number of a project. Phone routes refer to it by its ID.
type PhoneNumber struct {
	ID         string
	ProjectID  string
	Number     string // in E.164 format, such as +4930123456
	ResourceID string // the resource that takes the number's calls; "" for none
	Created    time.Time
}

// The minimum and maximum number of digits in a phone number (ITU-T E.164).
const (
	minDigits = 7
	maxDigits = 15
)

// ParseNumber returns a phone number in E.164 format. The text must begin with + or 00, and may
// contain spaces, hyphens, periods and parentheses. For any other text, ok is false. National numbers
// are not accepted, because the country is unknown.
func ParseNumber(text string) (number string, ok bool) {
	digits, found := strings.CutPrefix(text, "+")
	if !found {
		digits, found = strings.CutPrefix(text, "00")
		if !found {
			return "", false
		}
	}

	var b strings.Builder
	b.WriteByte('+')
	for _, r := range digits {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case !strings.ContainsRune(" -.()", r):
			return "", false
		}
	}

	number = b.String()
	n := len(number) - 1
	return number, n >= minDigits && n <= maxDigits && number[1] != '0'
}

// Create adds a phone number to a project.
func (ns *PhoneNumbers) Create(ctx context.Context, projectID, text string) (PhoneNumber, error) {
	number, ok := ParseNumber(text)
	switch {
	case text == "":
		return PhoneNumber{}, problem.Missing("number")
	case !ok:
		return PhoneNumber{}, problem.BadParam("number", "number must be a phone number such as +4930123456")
	}
	n := PhoneNumber{ID: newID(), ProjectID: projectID, Number: number, Created: ns.now()}
	return n, ns.store.CreateNumber(ctx, n)
}

// Find returns a phone number of a project.
func (ns *PhoneNumbers) Find(ctx context.Context, projectID, id string) (PhoneNumber, error) {
	id, ok := canonical(id)
	if !ok {
		return PhoneNumber{}, problem.NoSuch("phone number")
	}
	return ns.store.FindNumber(ctx, projectID, id)
}

// List returns a page of a project's phone numbers.
func (ns *PhoneNumbers) List(ctx context.Context, projectID string, q page.Query) (page.Page[PhoneNumber], error) {
	return ns.store.ListNumbers(ctx, projectID, q)
}

// Delete removes a phone number from its project. Calls to the number are then refused.
func (ns *PhoneNumbers) Delete(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("phone number")
	}
	return ns.store.DeleteNumber(ctx, projectID, id)
}

// AddressFor returns the address that takes the calls of a phone number. If no project has the
// number, or nothing takes its calls, AddressFor returns problem.NotFound.
func (ns *PhoneNumbers) AddressFor(ctx context.Context, number string) (Address, error) {
	n, err := ns.store.FindNumberByDigits(ctx, number)
	if err != nil {
		return Address{}, err
	}
	if n.ResourceID == "" {
		return Address{}, problem.NoSuch("phone route")
	}
	return ns.addresses.first(ctx, n.ProjectID, n.ResourceID)
}

// FindByHost returns the SIP address for a URI. name is the first label of the URI's host. An
// address for this user takes precedence over an address for any user. If no address matches,
// FindByHost returns problem.NotFound.
func (sip *SIP) FindByHost(ctx context.Context, name, user string) (SIPAddress, error) {
	a, err := sip.store.FindSIPAddressByName(ctx, name, user)
	if errors.Is(err, problem.NotFound) {
		return sip.store.FindSIPAddressByName(ctx, name, "*")
	}
	return a, err
}

// Password returns the password that callers of a SIP address need, or "".
func (sip *SIP) Password(a SIPAddress) (string, error) {
	if a.Secrets == "" {
		return "", nil
	}
	secrets, err := sip.openSecrets(a.ID, a.Secrets)
	return secrets.Text("password"), err
}

// Target returns the address of the resource that takes the calls of a SIP address.
func (sip *SIP) Target(ctx context.Context, a SIPAddress) (Address, error) {
	return sip.resources.addresses.first(ctx, a.ProjectID, a.ResourceID)
}
