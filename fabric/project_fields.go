package fabric

import "fmt"

// A ProjectField describes a setting of a project. To add a setting, add a field to [Project] and to
// [ProjectChange], a line to [ProjectFields], and a column in a migration. Statements, audit events,
// declaration files, exports and imports loop over ProjectFields. Only flags, pages, and the requests
// and responses that clients expect list their settings themselves.
type ProjectField struct {
	Name   string // in JSON, in errors and in declaration files
	Column string // in the database and in audit events

	Value func(*Project) any   // returns the address of the setting
	Text  func(Project) string // formats the setting

	// New returns the address of the setting's new value, or nil if the change leaves the setting
	// unchanged.
	New func(ProjectChange) any

	same func(a, b Project) bool               // reports whether both have the same value
	set  func(c *ProjectChange, value Project) // sets the new value in c to the value in a project
}

// ProjectFields lists the settings of a project, except its logos.
var ProjectFields = []ProjectField{
	setting("name", "name", func(p *Project) *string { return &p.Name },
		func(c *ProjectChange) **string { return &c.Name }),
	setting("record_rate", "record_rate", func(p *Project) *int64 { return &p.RecordRate },
		func(c *ProjectChange) **int64 { return &c.RecordRate }),
	setting("media_auth", "media_auth", func(p *Project) *string { return &p.MediaAuth },
		func(c *ProjectChange) **string { return &c.MediaAuth }),
	setting("require_factor", "require_factor", func(p *Project) *bool { return &p.RequireFactor },
		func(c *ProjectChange) **bool { return &c.RequireFactor }),
	setting("color", "color", func(p *Project) *string { return &p.Color },
		func(c *ProjectChange) **string { return &c.Color }),
	setting("tos_uri", "terms_uri", func(p *Project) *string { return &p.Terms },
		func(c *ProjectChange) **string { return &c.Terms }),
	setting("policy_uri", "policy_uri", func(p *Project) *string { return &p.Privacy },
		func(c *ProjectChange) **string { return &c.Privacy }),
	setting("registration", "registration", func(p *Project) *Registration { return &p.Registration },
		func(c *ProjectChange) **Registration { return &c.Registration }),
	setting("record_calls", "record_calls", func(p *Project) *RecordCalls { return &p.RecordCalls },
		func(c *ProjectChange) **RecordCalls { return &c.RecordCalls }),
	setting("client_registration", "client_registration",
		func(p *Project) *ClientRegistration { return &p.ClientRegistration },
		func(c *ProjectChange) **ClientRegistration { return &c.ClientRegistration }),
	setting("outbound_calls", "outbound_calls", func(p *Project) *OutboundCalls { return &p.OutboundCalls },
		func(c *ProjectChange) **OutboundCalls { return &c.OutboundCalls }),
	setting("outbound_prefixes", "outbound_prefixes", func(p *Project) *Prefixes { return &p.OutboundPrefixes },
		func(c *ProjectChange) **Prefixes { return &c.OutboundPrefixes }),
	setting("recording_quota", "recording_quota", func(p *Project) *int64 { return &p.RecordingQuota },
		func(c *ProjectChange) **int64 { return &c.RecordingQuota }),
	setting("upload_rate", "upload_rate", func(p *Project) *int64 { return &p.UploadRate },
		func(c *ProjectChange) **int64 { return &c.UploadRate }),
}

// setting returns a ProjectField. The functions value and input return the addresses of the setting
// and of its new value.
func setting[T comparable](
	name, column string, value func(*Project) *T, input func(*ProjectChange) **T,
) ProjectField {
	return ProjectField{
		Name:   name,
		Column: column,
		Value:  func(p *Project) any { return value(p) },
		Text:   func(p Project) string { return fmt.Sprint(*value(&p)) },
		New: func(c ProjectChange) any {
			if changed := *input(&c); changed != nil {
				return changed
			}
			return nil
		},
		same: func(a, b Project) bool { return *value(&a) == *value(&b) },
		set:  func(c *ProjectChange, p Project) { *input(c) = value(&p) },
	}
}

// ChangeTo returns a change of the settings in which other differs from p, except the logos.
func (p Project) ChangeTo(other Project) (c ProjectChange) {
	for _, f := range ProjectFields {
		if !f.same(p, other) {
			f.set(&c, other)
		}
	}
	return c
}

// settings returns a change that sets all settings of p, except the logos.
func (p Project) settings() (c ProjectChange) {
	for _, f := range ProjectFields {
		f.set(&c, p)
	}
	return c
}
