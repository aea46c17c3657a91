package fabric

import "errors"

// A Person contains the texts that describe a subscriber as a person. Each text may be "". To add a
// text, add a field here and in [Profile], a line in [PersonFields], and a column with its name.
// Statements, checks, forms, flags, imports and exports loop over PersonFields. Only the types of the
// APIs' requests and responses name each field.
type Person struct {
	FirstName   string `json:"first_name,omitempty"`
	LastName    string `json:"last_name,omitempty"`
	DisplayName string `json:"display_name,omitempty"`
	JobTitle    string `json:"job_title,omitempty"`
	CompanyName string `json:"company_name,omitempty"`
	TimeZone    string `json:"time_zone,omitempty"`
	Country     string `json:"country,omitempty"`
	Region      string `json:"region,omitempty"`
}

// A Profile holds the fields of a Person to set; nil fields are left unchanged.
type Profile struct {
	FirstName   *string
	LastName    *string
	DisplayName *string
	JobTitle    *string
	CompanyName *string
	TimeZone    *string
	Country     *string
	Region      *string
}

// A PersonField describes a field of a Person.
type PersonField struct {
	Name  string                         // in JSON, in errors and in the database
	Label string                         // on pages and in lists
	Text  func(*Person) *string          // returns the address of the field
	Input func(*Profile) **string        // returns the address of the field that changes it
	check func(param, text string) error // checks a text that checkText accepts; may be nil
}

// PersonFields lists the fields of a Person, in the order in which pages show them.
var PersonFields = [...]PersonField{
	{"first_name", "First name", func(p *Person) *string { return &p.FirstName },
		func(p *Profile) **string { return &p.FirstName }, checkShown},
	{"last_name", "Last name", func(p *Person) *string { return &p.LastName },
		func(p *Profile) **string { return &p.LastName }, checkShown},
	{"display_name", "Display name", func(p *Person) *string { return &p.DisplayName },
		func(p *Profile) **string { return &p.DisplayName }, checkName},
	{"job_title", "Job title", func(p *Person) *string { return &p.JobTitle },
		func(p *Profile) **string { return &p.JobTitle }, nil},
	{"company_name", "Company", func(p *Person) *string { return &p.CompanyName },
		func(p *Profile) **string { return &p.CompanyName }, nil},
	{"time_zone", "Time zone", func(p *Person) *string { return &p.TimeZone },
		func(p *Profile) **string { return &p.TimeZone }, nil},
	{"country", "Country", func(p *Person) *string { return &p.Country },
		func(p *Profile) **string { return &p.Country }, nil},
	{"region", "Region", func(p *Person) *string { return &p.Region },
		func(p *Profile) **string { return &p.Region }, nil},
}

// ChangeTo returns the fields of another Person that differ from p.
func (p Person) ChangeTo(other Person) (c Profile) {
	for _, f := range PersonFields {
		if text := *f.Text(&other); text != *f.Text(&p) {
			*f.Input(&c) = &text
		}
	}
	return c
}

// check returns everything that is wrong with the fields that are set.
func (p Profile) check() error {
	var errs []error
	for _, f := range PersonFields {
		text := *f.Input(&p)
		if text == nil {
			continue
		}
		err := checkText(f.Name, *text)
		if err == nil && f.check != nil {
			err = f.check(f.Name, *text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// apply sets the fields of person that are set in p.
func (p Profile) apply(person *Person) {
	for _, f := range PersonFields {
		if text := *f.Input(&p); text != nil {
			*f.Text(person) = *text
		}
	}
}

// differs reports whether any field that is set in p differs from person.
func (p Profile) differs(person Person) bool {
	changed := person
	p.apply(&changed)
	return changed != person
}
