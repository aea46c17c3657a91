package dashboard

// setTheme serves POST /dashboard/account/theme: light or dark pages in this browser, or as it
// prefers.
func (a *accountPages) setTheme(v *visit) error {
	a.cookies.SetTheme(v.w, v.r, v.form.Get("theme"))
	return v.redirect(orFront(ownPath(fromPage(v.r))))
}
