package templates

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
	Password PasswordSection
	Sessions []SessionRow
	Apps     []AppRow
}

func (AccountPage) name() string { return "account.html" }

// ProfileSection is who the subscriber says that it is.
type ProfileSection struct {
	Error                            string
	FirstName, LastName, DisplayName string
}

// PasswordSection changes the password, or sets the first one.
type PasswordSection struct {
	Set            bool
	Error, ErrorIn string // what is wrong, and the field that it is about
}
