// Package conformance checks a running server against the OpenID Foundation's certification plans
// for providers. Each plan is a test and each module a subtest with the module's name.
//
// A module checks the same conditions as the Foundation's suite, including those that only cause
// warnings. docs/openid.md lists the modules that the suite would warn of, or skip because the
// provider does not offer what they test. A module fails if its outcome differs from that page.
// The browser has no JavaScript.
package conformance
