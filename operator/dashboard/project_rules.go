package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// rulePages serves the pages that show and change the rules of a project.
type rulePages struct {
	*site
}

// These are the options of most rules.
var (
	registrations = []choice{
		{Value: string(fabric.RegistrationOff), Title: "Invitation only",
			Why: "Accounts are created by operators, the API or invitations."},
		{Value: string(fabric.RegistrationOpen), Title: "Open registration",
			Why: "Anyone with an email address can create an account on the login page."},
	}
	factorRules = []choice{
		{Value: "no", Title: "Optional",
			Why: "People without a second factor sign in with their password alone."},
		{Value: "yes", Title: "Required for everyone",
			Why: "People without one are asked to set up a passkey or authenticator app at their next sign-in."},
	}
	mediaRules = []choice{
		{Value: "public", Title: "Anyone with the URL",
			Why: "What existing clients expect. The URL cannot be guessed."},
		{Value: "basic", Title: "Credentials required", Why: "Anyone with access to the recording."},
		{Value: "signed", Title: "Credentials or a signed link", Why: "A link is valid for at most 30 days."},
	}
	recordRules = []choice{
		{Value: string(fabric.RecordOff), Title: "Off",
			Why: "A call is recorded only if one of its subscribers has recording on."},
		{Value: string(fabric.RecordOn), Title: "On",
			Why: words.Sentences("Every call is recorded, unless all its subscribers have recording off.",
				recordConsent)},
	}
)

// clientRules are the options of a project's rule for clients that register themselves.
var clientRules = []choice{
	{Value: string(fabric.ClientsOff), Title: "Operators register clients", Why: "No app registers itself."},
	{Value: string(fabric.ClientsByToken), Title: "With an initial access token",
		Why: "Apps with a token register themselves. They may request only the scopes of OpenID Connect."},
	{Value: string(fabric.ClientsOpen), Title: "Any app",
		Why: "Every app can register itself, without a token. Only one project can have this rule."},
}

// outboundRules are the options of a project's rule for calls through SIP gateways.
var outboundRules = []choice{
	{Value: string(fabric.OutboundOff), Title: "Off", Why: "Nobody calls phone numbers or SIP gateways."},
	{Value: string(fabric.OutboundOn), Title: "On",
		Why: "Subscribers call phone numbers with the prefixes below. Satellites and premium rates stay refused, " +
			"unless a prefix names them."},
}

// recordConsent is the warning on every page that can enable recording.
const recordConsent = "In many countries everyone on a call must consent to its recording."

// A rulesPage shows the rules of a project, or the form that changes them.
type rulesPage struct {
	Base         string
	Registration choice
	Factors      choice
	Media        choice
	Recording    choice
	Clients      choice
	Outbound     choice
	Prefixes     string
	Quota        string // "" means no limit
	Uploads      int64  // 0 means no limit
	MayChange    bool
	Form         form
}

// showRules serves GET /dashboard/projects/{project}/rules.
func (a *rulePages) showRules(v *visit) error {
	return a.page(v, http.StatusOK, "Rules", "policies", rulesPage{
		Base:         v.base(),
		Registration: findChoice(registrations, string(v.project.Registration)),
		Factors:      findChoice(factorRules, yesOrNo(v.project.RequireFactor)),
		Media:        findChoice(mediaRules, v.project.MediaAuth),
		Recording:    findChoice(recordRules, string(v.project.RecordCalls)),
		Clients:      findChoice(clientRules, string(v.project.ClientRegistration)),
		Outbound:     findChoice(outboundRules, string(v.project.OutboundCalls)),
		Prefixes:     string(v.project.OutboundPrefixes),
		Quota:        v.size(v.project.RecordingQuota),
		Uploads:      v.project.UploadRate,
		MayChange:    v.mayIn(operator.Write),
	})
}

// findChoice returns the choice with the given value. If there is none, it returns a new choice whose
// title is the value.
func findChoice(choices []choice, value string) choice {
	for _, c := range choices {
		if c.Value == value {
			return c
		}
	}
	return choice{Value: value, Title: value}
}

// yesOrNo returns the value of a boolean rule in a form.
func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// editRules serves GET /dashboard/projects/{project}/rules/edit.
func (a *rulePages) editRules(v *visit) error {
	return a.page(v, http.StatusOK, "Edit rules", "policies_form",
		rulesPage{Base: v.base(), Form: v.rulesForm()})
}

// rulesForm returns the form that changes the rules of the visit's project.
func (v *visit) rulesForm() form {
	inputs := []input{
		{Kind: kindCards, Name: "registration", Label: "Accounts",
			Options: selectChoices(registrations, string(v.project.Registration))},
		{Kind: kindCards, Name: "require_factor", Label: "Second factor",
			Options: selectChoices(factorRules, yesOrNo(v.project.RequireFactor))},
		{Kind: kindCards, Name: "media_auth", Label: "Access to recorded audio",
			Options: selectChoices(mediaRules, v.project.MediaAuth)},
		{Kind: kindCards, Name: "record_calls", Label: "Recording of calls",
			Options: selectChoices(recordRules, string(v.project.RecordCalls))},
		{Kind: kindCards, Name: "client_registration", Label: "OAuth clients that register themselves",
			Options: selectChoices(clientRules, string(v.project.ClientRegistration))},
		{Kind: kindCards, Name: "outbound_calls", Label: "Calls to phone numbers",
			Options: selectChoices(outboundRules, string(v.project.OutboundCalls))},
		{Kind: kindText, Name: "outbound_prefixes", Label: "Prefixes that may be called",
			Hint: "Such as +49 +43, separated by spaces.", Value: string(v.project.OutboundPrefixes)},
		{Kind: kindText, Name: "recording_quota", Label: "Quota of recordings",
			Hint:  "Such as 10 GB, or a number of bytes; 0 for no limit.",
			Value: fmt.Sprint(v.project.RecordingQuota)},
		{Kind: kindText, Name: "upload_rate", Label: "Uploads per minute",
			Hint: "Maximum number of uploads of recordings; 0 for no limit.", Value: fmt.Sprint(v.project.UploadRate)},
	}
	return form{Inputs: inputs, Seen: marks(inputs)}
}

// rulesChange returns the rules that the form changes. It leaves out rules that are not in the
// form.
func (v *visit) rulesChange() (c fabric.ProjectChange, err error) {
	changed := func(name, current string) (value string, ok bool) {
		value = v.form.Get(name)
		return value, v.form.Has(name) && value != current
	}

	if text, ok := changed("registration", string(v.project.Registration)); ok {
		r := fabric.Registration(text)
		c.Registration = &r
	}

	if text, ok := changed("require_factor", yesOrNo(v.project.RequireFactor)); ok {
		required := text == "yes"
		c.RequireFactor = &required
		if !required && text != "no" {
			err = problem.BadParam("require_factor", "require_factor must be yes or no")
		}
	}

	if media, ok := changed("media_auth", v.project.MediaAuth); ok {
		c.MediaAuth = &media
	}
	if text, ok := changed("record_calls", string(v.project.RecordCalls)); ok {
		c.RecordCalls = (*fabric.RecordCalls)(&text)
	}

	if text, ok := changed("client_registration", string(v.project.ClientRegistration)); ok {
		c.ClientRegistration = (*fabric.ClientRegistration)(&text)
	}
	if text, ok := changed("outbound_calls", string(v.project.OutboundCalls)); ok {
		c.OutboundCalls = (*fabric.OutboundCalls)(&text)
	}

	if text, ok := changed("outbound_prefixes", string(v.project.OutboundPrefixes)); ok {
		c.OutboundPrefixes = (*fabric.Prefixes)(&text)
	}

	if text, ok := changed("recording_quota", fmt.Sprint(v.project.RecordingQuota)); ok {
		n, isSize := parseSize(text)
		if !isSize {
			err = errors.Join(err, problem.BadParam("recording_quota",
				"recording_quota must be a size such as 10 GB, or a whole number of bytes"))
		}
		c.RecordingQuota = &n
	}
	if text, ok := changed("upload_rate", fmt.Sprint(v.project.UploadRate)); ok {
		n, wrong := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if wrong != nil {
			err = errors.Join(err, problem.BadParam("upload_rate", "upload_rate must be a whole number"))
		}
		c.UploadRate = &n
	}
	return c, err
}

// sizeUnits maps the units that pages show, in lower case, to their sizes in bytes.
var sizeUnits = map[string]float64{"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}

// parseSize parses a number of bytes, or a number with a unit, such as 1.5 GB.
func parseSize(text string) (bytes int64, ok bool) {
	text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
	unitAt := strings.IndexFunc(text, unicode.IsLetter)
	if unitAt < 0 {
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	}
	unit, isKnown := sizeUnits[text[unitAt:]]
	n, err := strconv.ParseFloat(strings.Replace(text[:unitAt], ",", ".", 1), 64)
	if !isKnown || err != nil || n < 0 || n*unit > 1e18 {
		return 0, false
	}
	return int64(n * unit), true
}

// saveRules serves POST /dashboard/projects/{project}/rules/edit.
func (a *rulePages) saveRules(v *visit) error {
	p := rulesPage{Base: v.base(), Form: v.rulesForm()}
	err := a.updateRules(v, p.Form.Inputs)
	if p.Form.blame(err) {
		retype(p.Form.Inputs, v.form)
		return a.page(v, http.StatusUnprocessableEntity, "Edit rules", "policies_form", p)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/rules?done=changed")
}

// updateRules writes the rules that the form changes.
func (a *rulePages) updateRules(v *visit, inputs []input) error {
	if err := v.merge(inputs); err != nil {
		return err
	}
	c, err := v.rulesChange()
	if err != nil {
		return errors.Join(err, c.Check())
	}
	_, err = a.Fabric.Projects.Update(v.r.Context(), v.project.ID, c)
	return err
}
