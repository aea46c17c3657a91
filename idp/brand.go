package idp

import (
	"errors"
	"net/url"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// checkBrand refuses what pages cannot show of a client. A colour that text is not read in
// is made lighter or darker where it is shown.
func (c Client) checkBrand() error {
	var errs []error
	if c.BrandColor != "" && !mail.IsColor(c.BrandColor) {
		errs = append(errs, problem.BadParam("brand_color", "brand_color must be # and six hexadecimal digits in small letters, such as #2f4b9b"))
	}
	for _, link := range [][2]string{{"tos_uri", c.TermsURI}, {"policy_uri", c.PolicyURI}} {
		u, err := url.Parse(link[1])
		if link[1] != "" && (err != nil || len(link[1]) > maxURI || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil) {
			errs = append(errs, problem.BadParam(link[0], "%s must be an address with https or http", link[0]))
		}
	}
	return errors.Join(errs...)
}
