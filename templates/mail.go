package templates

// Forgot asks for the address to which to send a link for a new password.
type Forgot struct {
	ID, App string
	Email   string // as typed before
}

// Register asks for the data of a new account.
type Register struct {
	ID, App, Host       string
	Email               string // as typed before
	FirstName, LastName string
	Rule                string // the length of a password
	Error, ErrorIn      string // the error, and its field
}

// Notice describes what has happened, and what to do next.
type Notice struct {
	ID      string // the id of the page, used by tests
	Title   string
	Text    []string
	Button  *Link // may be nil
	Account *Link // to the account page, if nothing else is pending; may be nil
	Mailbox bool  // emails are kept at /dev/mail instead of being sent
}

// NewPassword asks for the new password of an account, after the person opened a link in an email.
type NewPassword struct {
	Title, Text   string
	Action, Token string // the form's target, and the link's token
	Email         string // for password managers
	Rule          string // the length of the password
	Error         string // may be ""
	Button        string
	Note          string
}

// Confirm asks people to confirm the action of a link that they opened in an email.
type Confirm struct {
	Title, Text   string
	Action, Token string
	Button        string
}

// Mailbox lists emails that were kept instead of sent.
type Mailbox struct {
	Mails []Mail
	Back  string // path of the dashboard's page that linked here, or ""
}

// A Mail is an email in the list.
type Mail struct {
	Key, To, Subject string
	Arrived, At      string // when the mail arrived: for people, and as RFC 3339
}

// MailShown is one email, opened.
type MailShown struct {
	Mail
	From, Text string
	Link       string // the link in it; may be ""
	Back       string // as in Mailbox
}

func (Forgot) name() string      { return "forgot.html" }
func (Register) name() string    { return "register.html" }
func (Notice) name() string      { return "notice.html" }
func (NewPassword) name() string { return "newpassword.html" }
func (Confirm) name() string     { return "confirm.html" }
func (Mailbox) name() string     { return "mailbox.html" }
func (MailShown) name() string   { return "mailshown.html" }
