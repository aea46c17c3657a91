package templates

// Forgot asks where to send a link to set a new password.
type Forgot struct {
	ID, App string
	Email   string // typed before
}

// Register asks for what an account is made of.
type Register struct {
	ID, App, Host       string
	Email               string // typed before
	FirstName, LastName string
	Rule                string // how long a password is
	Error, ErrorIn      string // what is wrong, and the field that it is about
}

// Notice says what has happened, and what may be done next.
type Notice struct {
	ID      string // of the page, for tests
	Title   string
	Text    []string
	Button  *Link // nil for none
	Account *Link // to the account, where nothing else waits; nil for none
	Mailbox bool  // mails are not sent, but kept at /dev/mail
}

// NewPassword asks for the password of an account, by the link of a mail.
type NewPassword struct {
	Title, Text   string
	Action, Token string // where the form goes, and what of the link goes with it
	Email         string // for password managers
	Rule          string // how long it is
	Error         string // "" at first
	Button        string
	Note          string
}

// Confirm asks whether a thing shall be done that the link of a mail is for.
type Confirm struct {
	Title, Text   string
	Action, Token string
	Button        string
}

// Mailbox lists mails that were kept instead of sent.
type Mailbox struct{ Mails []Mail }

// A Mail is one of them.
type Mail struct{ Key, To, Subject, Arrived string }

// MailShown is one of them, opened.
type MailShown struct {
	Mail
	From, Text string
	Link       string // in it; "" for none
}

func (Forgot) name() string      { return "forgot.html" }
func (Register) name() string    { return "register.html" }
func (Notice) name() string      { return "notice.html" }
func (NewPassword) name() string { return "newpassword.html" }
func (Confirm) name() string     { return "confirm.html" }
func (Mailbox) name() string     { return "mailbox.html" }
func (MailShown) name() string   { return "mailshown.html" }
