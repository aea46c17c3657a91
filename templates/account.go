package templates

// AccountPage is a subscriber's own page. Each section has its own template, and a field with the
// values that only that section needs.
type AccountPage struct {
	Project string // the project's id, sent back with each form
	Token   string // the form token, sent back with each form
	Name    string
	Email   string
	Notice  string // what was just done; may be ""
	Stale   bool   // the login is too old to change how to sign in

	Profile  ProfileSection
	Address  AddressSection
	Password PasswordSection
	Sessions []SessionRow
	Apps     []AppRow
	Recorded bool // the subscriber's calls are recorded
	Factors  FactorSection
	Display  DisplaySection
}

func (AccountPage) name() string { return "account.html" }

// ProfileSection shows the subscriber's names.
type ProfileSection struct{ First, Last, Display ProfileName }

// A ProfileName is one of the subscriber's names.
type ProfileName struct {
	ID, Name string // the element's id, and the field's name
	Label    string
	Fills    string // the value of autocomplete
	Value    string // as typed, or as stored
	Was      string // as stored when the page was shown
	Error    string // what is wrong with the value
}

// AddressSection shows the subscriber's email address, with a form that changes it.
type AddressSection struct {
	Verified bool   // the subscriber has confirmed the address
	Error    string // what is wrong with the new address
	New      string // the new address, as typed before
}

// DisplaySection is the form for the theme and the language of pages.
type DisplaySection struct{ Themes, Languages []Choice }

// A Choice is an option of a list from which people choose one.
type Choice struct {
	Value, Title string
	Chosen       bool
}

// PasswordSection is the form that changes the password, or sets the first one.
type PasswordSection struct {
	Set            bool
	Rule           string // the length of a new password
	Error, ErrorIn string // the error, and its field
}

// Unsent keeps a form of the account page that was sent without a valid or recent login.
type Unsent struct {
	Title, Text string
	Open, Link  string // the address of the login, and the text of the link; "" if the form can be sent now
	Action      string
	Fields      []Hidden
	Button      string
}

func (Unsent) name() string { return "unsent.html" }

// AccountApp is the page that sets up an authenticator app for an account.
type AccountApp struct {
	Project, Token string // sent back with the form, as in AccountPage
	Account        string // the address of the account
	Authenticator  AppForm
}

func (AccountApp) name() string { return "accountapp.html" }
