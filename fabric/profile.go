package fabric

import (
	"errors"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/internal/problem"
)

// maxText is the maximum length in characters of a text that a caller can store, unless the text has
// a limit of its own.
const maxText = 255

// checkText returns an error for text that cannot be stored. Such text is too long, is not UTF-8,
// or contains control characters such as NUL.
func checkText(param, text string) error {
	switch {
	case !utf8.ValidString(text):
		return problem.BadParam(param, "%s is not valid UTF-8", param)
	case len(text) > maxText && utf8.RuneCountInString(text) > maxText:
		return tooLong(param)
	case strings.ContainsFunc(text, unicode.IsControl):
		return problem.BadParam(param, "%s must not contain control characters", param)
	}
	return nil
}

func tooLong(param string) error {
	return problem.BadParam(param, "%s is too long (maximum is %d characters)", param, maxText)
}

// checkRequired returns an error for text that is blank or cannot be stored.
func checkRequired(param, text string) error {
	if strings.TrimSpace(text) == "" {
		return problem.Missing(param)
	}
	return checkText(param, text)
}

// checkEmail returns an error for text that is not an email address.
func checkEmail(param, email string) error {
	if err := checkRequired(param, email); err != nil {
		return err
	}
	if !isEmail(NormalizeEmail(email)) {
		return problem.BadParam(param, "%s is not an email address", param)
	}
	return nil
}

// isEmail reports whether normalized text is a plain email address, without a display name,
// comment, quotes or an address literal. RFC 5321, section 4.5.3, limits the length of the address.
// The address must pass checkShown. The host must be written as in the DNS. Otherwise, two spellings
// could be two accounts with the same mailbox, because browsers and mail servers read fullwidth
// letters and dots as plain characters (UTS 46).
func isEmail(text string) bool {
	if len(text) > maxEmail {
		return false
	}
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Address != text || strings.ContainsAny(text, " \"[]<>,;:\\") {
		return false
	}
	host := text[strings.LastIndexByte(text, '@')+1:]
	if norm.NFKC.String(host) != host || strings.ContainsRune(host, '\u3002') {
		return false
	}
	return checkShown("email", text) == nil
}

// maxEmail is the maximum length of an email address in bytes (RFC 5321, section 4.5.3.1.3).
const maxEmail = 254

// NormalizeEmail returns the form in which email addresses are stored and compared: NFC and lower
// case. Text that is far too long to be an address is returned unchanged.
func NormalizeEmail(email string) string {
	if len(email) > 4*maxEmail {
		return email
	}
	return norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(email))))
}

// CheckEmail returns an error that names param if email is not an email address.
func CheckEmail(param, email string) error { return checkEmail(param, email) }

// CheckPersonName returns an error that names param if name, a person's name, cannot be stored or
// could be mistaken for another name.
func CheckPersonName(param, name string) error {
	if err := checkText(param, name); err != nil {
		return err
	}
	return checkShown(param, name)
}

// StandardClaims contains the claims of OpenID Connect Core, section 5.1, that are neither in the
// [Profile] nor part of the account. Fields with zero values are not set.
type StandardClaims struct {
	MiddleName          string  `json:"middle_name,omitempty"`
	Nickname            string  `json:"nickname,omitempty"`
	PreferredUsername   string  `json:"preferred_username,omitempty"`
	ProfilePage         string  `json:"profile,omitempty"` // a URL, like the next two
	Picture             string  `json:"picture,omitempty"`
	Website             string  `json:"website,omitempty"`
	Gender              string  `json:"gender,omitempty"`
	Birthdate           string  `json:"birthdate,omitempty"` // 2006-01-02, 0000-01-02 or 2006
	Locale              string  `json:"locale,omitempty"`    // a BCP 47 tag
	PhoneNumber         string  `json:"phone_number,omitempty"`
	PhoneNumberVerified *bool   `json:"phone_number_verified,omitempty"`
	Address             *Postal `json:"address,omitempty"`
}

// verifyMore reports whether the claims say that a telephone number is verified, but the old claims do not.
func (c StandardClaims) verifyMore(old StandardClaims) bool {
	isVerified := func(c StandardClaims) bool { return c.PhoneNumberVerified != nil && *c.PhoneNumberVerified }
	return isVerified(c) && (!isVerified(old) || c.PhoneNumber != old.PhoneNumber)
}

// A Postal is a postal address (OpenID Connect Core, section 5.1.1).
type Postal struct {
	Formatted     string `json:"formatted,omitempty"` // may contain line breaks
	StreetAddress string `json:"street_address,omitempty"`
	Locality      string `json:"locality,omitempty"`
	Region        string `json:"region,omitempty"`
	PostalCode    string `json:"postal_code,omitempty"`
	Country       string `json:"country,omitempty"`
}

// phoneSyntax matches E.164 numbers with an optional extension (RFC 3966).
var phoneSyntax = regexp.MustCompile(`^\+[1-9][0-9]{1,14}(;ext=[0-9]{1,10})?$`)

// check returns everything that is wrong with the claims.
func (c StandardClaims) check() error {
	errs := []error{
		CheckPersonName("middle_name", c.MiddleName),
		CheckPersonName("nickname", c.Nickname),
		CheckPersonName("preferred_username", c.PreferredUsername),
		CheckPersonName("gender", c.Gender),
		checkWebPage("profile", c.ProfilePage),
		checkWebPage("picture", c.Picture),
		checkWebPage("website", c.Website),
	}
	bad := func(param, what string) {
		errs = append(errs, problem.BadParam(param, "%s must be %s", param, what))
	}

	if !isBirthdate(c.Birthdate) {
		bad("birthdate", "a date such as 1990-12-31, 0000-12-31 or 1990")
	}
	if len(c.Locale) > maxText { // parsing a very long tag takes seconds
		errs = append(errs, tooLong("locale"))
	} else if _, err := language.Parse(c.Locale); c.Locale != "" && err != nil {
		bad("locale", "a language tag such as en-GB")
	}
	if c.PhoneNumber != "" && !phoneSyntax.MatchString(c.PhoneNumber) {
		bad("phone_number", "an E.164 number, such as +14155550100")
	}
	if c.PhoneNumberVerified != nil && c.PhoneNumber == "" {
		bad("phone_number_verified", "omitted without phone_number")
	}

	return errors.Join(append(errs, c.Address.check())...)
}

// checkWebPage returns an error that names param if text is neither empty nor the URL of a web page.
func checkWebPage(param, text string) error {
	if text == "" || isWebPage(text) {
		return nil
	}
	return problem.BadParam(param, "%s must be an http or https URL", param)
}

// maxWebPage is the maximum length in bytes of the URL of a web page.
const maxWebPage = 2000

func isWebPage(text string) bool {
	if len(text) > maxWebPage || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	return (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}

// isBirthdate reports whether text is empty, a day, a day without a year, or a year.
func isBirthdate(text string) bool {
	if text == "" {
		return true
	}
	if day, ok := strings.CutPrefix(text, "0000-"); ok {
		text = "2000-" + day // 2000 is a leap year, so February 29 is valid
	}
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return true
	}
	_, err := time.Parse("2006", text)
	return err == nil
}

// check returns everything that is wrong with the address.
func (p *Postal) check() error {
	if p == nil {
		return nil
	}
	check := func(param, text string) error { return checkText(param, lineBreaks.Replace(text)) }
	return errors.Join(
		check("address.formatted", p.Formatted),
		check("address.street_address", p.StreetAddress),
		check("address.locality", p.Locality),
		check("address.region", p.Region),
		check("address.postal_code", p.PostalCode),
		check("address.country", p.Country),
	)
}

// lineBreaks replaces line breaks, which are allowed in addresses (OpenID Connect Core, section
// 5.1.1), with spaces.
var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ")
