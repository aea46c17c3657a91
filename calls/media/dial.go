package media

// A dialer sends digits to the linked leg, one after the other.
type dialer struct{}

// Dial implements calls.Media.
func (l *leg) Dial(digits string) {}
