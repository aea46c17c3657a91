package declared

import (
	"context"
	"errors"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/internal/brand"
)

// readLogos replaces the paths of logos in a project and its clients with the names of the logos. A name
// depends only on the picture, so the name of an unchanged logo equals the stored name.
func (d *Declarer) readLogos(ctx context.Context, p project) error {
	errs := []error{d.readEntryLogos(ctx, p.entry)}
	for _, e := range p.things["clients"] {
		errs = append(errs, d.readEntryLogos(ctx, e))
	}
	return errors.Join(errs...)
}

// readEntryLogos replaces the paths of logos in an entry.
func (d *Declarer) readEntryLogos(ctx context.Context, e entry) error {
	for _, theme := range brand.Themes {
		for i, m := range e.members {
			if m.key.Value != theme.Param() {
				continue
			}
			if m.value.Kind != yaml.ScalarNode || m.value.Value == "" {
				continue
			}
			position := e.child(m.value, m.key.Value)
			picture, err := d.c.ReadFile(m.value.Value)
			if err != nil {
				return position.errorf("%v", err)
			}
			logo, err := brand.MakeLogo(ctx, theme.Param(), picture)
			if err != nil {
				return position.wrap(err)
			}

			d.logos[logo.Name] = logo
			named := *m.value
			named.Value = logo.Name
			e.members[i].value = &named
		}
	}
	return nil
}

// changedLogos returns the logos whose name in now differs from their name in old.
func (d *Declarer) changedLogos(old, now map[brand.Theme]string) brand.Logos {
	logos := make(brand.Logos)
	for theme, name := range now {
		if old[theme] != name {
			logos[theme] = d.logos[name] // the zero value removes the logo
		}
	}
	return logos
}

// logoNames returns the names of logos by their theme.
func logoNames(light, dark string) map[brand.Theme]string {
	return map[brand.Theme]string{brand.Light: light, brand.Dark: dark}
}
