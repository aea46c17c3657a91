package fabric

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/selvage/selvage/internal/problem"
)

// StandardClaims are the claims of OpenID Connect Core, section 5.1, that belong neither
// to the [Profile] nor to the account. Zero fields are not set.
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

// A Postal is a postal address (OpenID Connect Core, section 5.1.1).
type Postal struct {
	Formatted     string `json:"formatted,omitempty"` // may contain line breaks
	StreetAddress string `json:"street_address,omitempty"`
	Locality      string `json:"locality,omitempty"`
	Region        string `json:"region,omitempty"`
	PostalCode    string `json:"postal_code,omitempty"`
	Country       string `json:"country,omitempty"`
}

// phoneSyntax is E.164 with the extension of RFC 3966.
var phoneSyntax = regexp.MustCompile(`^\+[1-9][0-9]{1,14}(;ext=[0-9]{1,10})?$`)

// check returns everything that is wrong with the claims.
func (c StandardClaims) check() error {
	var errs []error
	bad := func(param, what string) { errs = append(errs, problem.BadParam(param, "%s must be %s", param, what)) }
	for _, f := range []struct{ param, said string }{
		{"middle_name", c.MiddleName}, {"nickname", c.Nickname}, {"preferred_username", c.PreferredUsername},
		{"gender", c.Gender},
	} {
		errs = append(errs, checkText(f.param, f.said), checkShown(f.param, f.said))
	}

	for _, f := range []struct{ param, said string }{{"profile", c.ProfilePage}, {"picture", c.Picture},
		{"website", c.Website}} {
		if !isWebPage(f.said) {
			bad(f.param, "an address with http or https")
		}
	}

	if !isBirthdate(c.Birthdate) {
		bad("birthdate", "a date such as 1990-12-31, 0000-12-31 or 1990")
	}
	if _, err := language.Parse(c.Locale); c.Locale != "" && err != nil {
		bad("locale", "a language tag such as en-GB")
	}
	if c.PhoneNumber != "" && !phoneSyntax.MatchString(c.PhoneNumber) {
		bad("phone_number", "in the form of E.164, such as +14155550100")
	}
	if c.PhoneNumberVerified != nil && c.PhoneNumber == "" {
		bad("phone_number_verified", "left out without phone_number")
	}

	return errors.Join(append(errs, c.Address.check())...)
}

func isWebPage(said string) bool {
	u, err := url.Parse(said)
	return said == "" || err == nil && len(said) <= 2000 && checkText("", said[:min(len(said), maxText)]) == nil &&
		(u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}

func isBirthdate(said string) bool {
	if len(said) == len("0000-01-02") && said[:5] == "0000-" {
		said = "2000" + said[4:] // 2000 is a leap year, so February 29 is valid
	}
	_, day := time.Parse(time.DateOnly, said)
	_, year := time.Parse("2006", said)
	return said == "" || day == nil || year == nil
}

func (p *Postal) check() error {
	if p == nil {
		return nil
	}
	var errs []error
	for _, f := range []struct{ param, said string }{
		{"address.formatted", p.Formatted}, {"address.street_address", p.StreetAddress},
		{"address.locality", p.Locality},
		{"address.region", p.Region}, {"address.postal_code", p.PostalCode}, {"address.country", p.Country},
	} {
		errs = append(errs, checkText(f.param, lineBreaks.Replace(f.said)))
	}
	return errors.Join(errs...)
}

// lineBreaks are allowed in addresses (OpenID Connect Core, section 5.1.1).
var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ")
