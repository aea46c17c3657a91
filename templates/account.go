package templates

import "time"

// AccountPage is a subscriber's own page. Each section has a template of its own; what
// only one section needs is in its field.
type AccountPage struct {
	Project string // its id, which goes back with each form
	Token   string // of the forms, likewise
	Name    string
	Email   string
	Notice  string // what was just done; "" for nothing
	Stale   bool   // the login is too old for what changes how one signs in

	Profile  ProfileSection
	Address  AddressSection
	Password PasswordSection
	Sessions []SessionRow
	Apps     []AppRow
	Factors  FactorSection
	Display  DisplaySection
}

func (AccountPage) name() string { return "account.html" }

// ProfileSection is who the subscriber says that it is.
type ProfileSection struct {
	Error                            string
	FirstName, LastName, DisplayName string
}

// AddressSection is the subscriber's e-mail, and how it gets another.
type AddressSection struct {
	Verified bool   // it has shown that it is its own
	Error    string // what is wrong with the new one
	New      string // typed before
}

// DisplaySection is how the subscriber is shown pages.
type DisplaySection struct{ Themes, Languages []Choice }

// A Choice is one of several, of which one is chosen.
type Choice struct {
	Value, Title string
	Chosen       bool
}

// PasswordSection changes the password, or sets the first one.
type PasswordSection struct {
	Set            bool
	Rule           string // how long a new one is
	Error, ErrorIn string // what is wrong, and the field that it is about
}

// FactorSection is what proves who the subscriber is beside a password.
type FactorSection struct {
	There      bool // whether there can be any
	CanPasskey bool // whether a passkey can be added
	Passkeys   []FactorItem
	Passkey    Passkey     // to add; its Options are "" where the login is too old
	App        *FactorItem // nil where there is none
	Codes      int         // recovery codes that are left
}

// A FactorItem is one of them.
type FactorItem struct {
	ID, Name      string
	BackedUp      bool
	Created, Used time.Time
}

// AccountApp sets an authenticator app up for an account.
type AccountApp struct {
	Project, Token string // of the form, as in AccountPage
	Account        string // the address of the account
	Authenticator  AppForm
}

func (AccountApp) name() string { return "accountapp.html" }
