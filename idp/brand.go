package idp

import (
	"cmp"
	"context"
	"errors"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// checkBrand returns an error if pages cannot show the branding. It accepts a color with too little
// contrast, because pages show a lighter or darker color instead.
func (c Client) checkBrand() error {
	var errs []error
	if c.BrandColor != "" && !mail.IsColor(c.BrandColor) {
		errs = append(errs, problem.BadParam(
			"brand_color", "brand_color must be # and six lower-case hexadecimal digits, such as #2f4b9b"))
	}
	errs = append(errs, fabric.CheckLink("tos_uri", c.TermsURI), fabric.CheckLink("policy_uri", c.PolicyURI))
	return errors.Join(errs...)
}

// SetLogos sets logos of a client. They must come from [brand.MakeLogo]. If the client has no
// logos, pages show those of the project.
func (cs *Clients) SetLogos(ctx context.Context, id string, all brand.Logos) (Client, error) {
	if len(all) == 0 {
		return cs.store.FindClient(ctx, id)
	}
	defer cs.recent.Drop(id)
	defer cs.Fabric.Projects.ForgetLogos()
	if err := cs.store.SetClientLogos(ctx, id, all, cs.Now()); err != nil {
		return Client{}, err
	}
	return cs.store.FindClient(ctx, id)
}

// A Brand is the branding of a page or email.
type Brand struct {
	Color          string // "#rrggbb"; may be ""
	Logo           string // name of a picture; may be ""
	DarkLogo       string // name of the picture for dark pages; "" if Logo is for all pages
	Terms, Privacy string // URLs; may be ""
}

// Brand returns the branding of a client. Settings that the client lacks come from its project.
func (cs *Clients) Brand(ctx context.Context, c Client) (Brand, error) {
	b := Brand{Color: c.BrandColor, Terms: c.TermsURI, Privacy: c.PolicyURI}
	b.Logo, b.DarkLogo = brand.Pair(c.Logo, c.DarkLogo)
	project, err := cs.Fabric.Projects.Find(ctx, c.ProjectID)
	if err != nil {
		return b, err
	}
	if b.Logo == "" {
		b.Logo, b.DarkLogo = brand.Pair(project.Logo, project.DarkLogo)
	}
	b.Color = cmp.Or(b.Color, project.Color)
	b.Terms, b.Privacy = cmp.Or(b.Terms, project.Terms), cmp.Or(b.Privacy, project.Privacy)
	return b, nil
}
