package fabric

import (
	"errors"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/internal/problem"
)

// maxText bounds every text that a caller may store, in characters.
const maxText = 255

// checkText returns an error for a text that cannot be stored: too long, not UTF-8, or
// with control characters such as NUL.
func checkText(param, text string) error {
	switch {
	case !utf8.ValidString(text):
		return problem.BadParam(param, "%s is not valid UTF-8", param)
	case len(text) > maxText && utf8.RuneCountInString(text) > maxText:
		return problem.BadParam(param, "%s is too long (maximum is %d characters)", param, maxText)
	case strings.ContainsFunc(text, unicode.IsControl):
		return problem.BadParam(param, "%s must not contain control characters", param)
	}
	return nil
}

// checkRequired returns an error for a text that is blank or cannot be stored.
func checkRequired(param, text string) error {
	if strings.TrimSpace(text) == "" {
		return problem.Missing(param)
	}
	return checkText(param, text)
}

// checkEmail returns an error for a text that is not an e-mail address.
func checkEmail(param, email string) error {
	if err := checkRequired(param, email); err != nil {
		return err
	}
	if !isEmail(NormalizeEmail(email)) {
		return problem.BadParam(param, "%s is not an e-mail address", param)
	}
	return nil
}

// isEmail reports whether a normalized text is a plain e-mail address: no
// display name, no comment, no quotes, no address literal (RFC 5321, section 4.5.3
// gives the length), and nothing in it that looks like another. Its host is written as the
// DNS has it: browsers and mail servers read full-width letters and dots as plain ones
// (UTS 46), so that two spellings would be two accounts of one mailbox.
func isEmail(text string) bool {
	parsed, err := mail.ParseAddress(text)
	host := text[strings.LastIndexByte(text, '@')+1:]
	if norm.NFKC.String(host) != host || strings.ContainsRune(host, '\u3002') {
		return false
	}
	return err == nil && parsed.Address == text && len(text) <= 254 &&
		!strings.ContainsAny(text, " \"[]<>,;:\\") && checkShown("email", text) == nil
}

// NormalizeEmail returns the form in which e-mails are stored and compared: NFC and lower
// case.
func NormalizeEmail(email string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(email))))
}

// A field ties a member of a Profile to its place in a Subscriber.
type field struct {
	param string
	said  *string
	kept  *string
}

func (p Profile) fields(s *Subscriber) [8]field {
	return [8]field{
		{"first_name", p.FirstName, &s.FirstName},
		{"last_name", p.LastName, &s.LastName},
		{"display_name", p.DisplayName, &s.DisplayName},
		{"job_title", p.JobTitle, &s.JobTitle},
		{"time_zone", p.TimeZone, &s.TimeZone},
		{"country", p.Country, &s.Country},
		{"company_name", p.CompanyName, &s.CompanyName},
		{"region", p.Region, &s.Region},
	}
}

func (p Profile) check() error {
	var errs []error
	for _, f := range p.fields(&Subscriber{}) {
		if f.said == nil {
			continue
		}
		if err := checkText(f.param, *f.said); err != nil {
			errs = append(errs, err)
			continue
		}
		switch f.param {
		case "display_name":
			errs = append(errs, checkName(f.param, *f.said))
		case "first_name", "last_name":
			errs = append(errs, checkShown(f.param, *f.said))
		}
	}

	return errors.Join(errs...)
}

// apply writes the fields that are set into s.
func (p Profile) apply(s *Subscriber) {
	for _, f := range p.fields(s) {
		if f.said != nil {
			*f.kept = *f.said
		}
	}
}

// differs reports whether a field that is set differs from s.
func (p Profile) differs(s Subscriber) bool {
	for _, f := range p.fields(&s) {
		if f.said != nil && *f.said != *f.kept {
			return true
		}
	}
	return false
}

// CheckEmail returns an error on param for a text that is not an e-mail address.
func CheckEmail(param, email string) error { return checkEmail(param, email) }

// CheckPersonName returns an error for a person's name that cannot be stored or could be
// mistaken for another one.
func CheckPersonName(param, name string) error {
	return errors.Join(checkText(param, name), checkShown(param, name))
}
