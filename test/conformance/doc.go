// Package conformance checks a running server against the OpenID Foundation's certification plans
// for providers. Each plan is a test and each module a subtest with the module's name.
//
// A module checks the same conditions as the Foundation's suite, including conditions that only
// cause warnings. A module can be skipped because the provider does not offer the feature that it
// tests. docs/openid.md lists the modules that the suite would warn about or skip. A module fails
// if its outcome differs from that page. The browser has no JavaScript.
package conformance
