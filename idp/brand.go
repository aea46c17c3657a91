package idp

import (
	"cmp"
	"context"
	"errors"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// checkBrand refuses what pages cannot show of a client. A colour that text is not read in
// is made lighter or darker where it is shown.
func (c Client) checkBrand() error {
	var errs []error
	if c.BrandColor != "" && !mail.IsColor(c.BrandColor) {
		errs = append(errs, problem.BadParam(
			"brand_color", "brand_color must be # and six hexadecimal digits in small letters, such as #2f4b9b"))
	}
	errs = append(errs, fabric.CheckLink("tos_uri", c.TermsURI), fabric.CheckLink("policy_uri", c.PolicyURI))
	return errors.Join(errs...)
}

// SetLogo returns a client a logo, which [logo.Make] has made; the zero value takes it away,
// so that the project's is shown.
func (cs *Clients) SetLogo(ctx context.Context, id string, l logo.Logo) (Client, error) {
	defer cs.recent.Drop(id)
	defer cs.Fabric.Projects.ForgetLogos()
	if err := cs.store.SetClientLogo(ctx, id, l, cs.Now()); err != nil {
		return Client{}, err
	}
	return cs.store.FindClient(ctx, id)
}

// A Brand is whose a page or a mail is.
type Brand struct {
	Color          string // "#rrggbb", or ""
	Logo           string // name of a picture, or ""
	Terms, Privacy string // addresses, or ""
}

// Brand returns what a client says of itself; what it does not say is its project's.
func (cs *Clients) Brand(ctx context.Context, c Client) (Brand, error) {
	b := Brand{Color: c.BrandColor, Logo: c.Logo, Terms: c.TermsURI, Privacy: c.PolicyURI}
	project, err := cs.Fabric.Projects.Find(ctx, c.ProjectID)
	if err != nil {
		return b, err
	}
	return Brand{
		Color: cmp.Or(b.Color, project.Color), Logo: cmp.Or(b.Logo, project.Logo),
		Terms: cmp.Or(b.Terms, project.Terms), Privacy: cmp.Or(b.Privacy, project.Privacy),
	}, nil
}
