// Package conformance asks of a running server what the OpenID Foundation's
// certification plans ask of a provider: one test a plan, one subtest a module,
// named as the module is.
//
// A module's conditions are those of the Foundation's suite, its warnings
// included. What the suite would only warn of, and what it would skip because the
// provider does not offer it, is told by docs/openid.md; a module that comes out
// otherwise than its row there fails. The browser has no JavaScript.
package conformance
