// Creates clients of the recordings API: the vendor's client, and twilio's client, from which it
// derives.
import { RestClient } from '@signalwire/compatibility-api'
import twilio from 'twilio'

export const settings = JSON.parse(process.env.SETTINGS)

/** Returns the client. The constructor of twilio's client accepts only account ids that begin with AC. */
export function connect(key) {
  const client =
    settings.library === 'twilio'
      ? twilio(settings.project, key, { accountSid: `AC${'0'.repeat(32)}` })
      : RestClient(settings.project, key, { signalwireSpaceUrl: settings.space })
  client.accountSid = settings.project
  if (settings.base) client.api.baseUrl = settings.base
  return client
}

export function sidsOf(recordings) {
  return recordings.map((r) => r.sid)
}

/** Reports whether a client made an error from a LaML 404. */
export function notFound(err) {
  return err.constructor.name === 'RestException' && err.status === 404 && err.code === 20404 && err.message !== '' && err.moreInfo !== ''
}
