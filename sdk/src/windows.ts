import { SelvageError } from "./errors.js"

/** Opens an empty popup immediately, while the browser still attributes it to the click. */
export function openPopup(): Window {
  const width = 480
  const height = 640
  const left = Math.max(0, screenX + (outerWidth - width) / 2)
  const top = Math.max(0, screenY + (outerHeight - height) / 3)
  const popup = window.open("about:blank", "_blank", `popup,width=${width},height=${height},left=${left},top=${top}`)
  if (!popup) throw new SelvageError("popup_blocked", "the browser did not open a window", "Call login({ popup: true }) at once when a button is clicked, or log in without a popup.")
  return popup
}

/** Returns a promise that is rejected if the popup is closed without a response. */
export function closed(popup: Window, stop: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    let seen = 0
    const timer = setInterval(() => {
      if (popup.closed && ++seen > 3) reject(new SelvageError("popup_closed", "the login window was closed", "The person closed it: offer the button again."))
    }, 300)
    stop.addEventListener("abort", () => clearInterval(timer))
  })
}

const patience = 30_000

/** Loads a URL in a hidden frame and returns its final URL, which must be of this origin. */
export async function visit(url: string): Promise<URL> {
  const frame = document.createElement("iframe")
  frame.hidden = true
  frame.src = url
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    return await new Promise((resolve, reject) => {
      const failed = (code: string, message: string, cause?: unknown) =>
        reject(new SelvageError(code, message, "The redirect URI must be a page of this origin that its own origin may frame (frame-ancestors 'self'), and be registered with the client.", { cause }))
      frame.onload = () => {
        try {
          resolve(new URL(frame.contentWindow!.location.href))
        } catch (cause) {
          failed("callback_failed", "the hidden frame did not return to this origin", cause)
        }
      }
      timer = setTimeout(failed, patience, "timeout", "the hidden frame timed out")
      document.body.append(frame)
    })
  } finally {
    clearTimeout(timer)
    frame.remove()
  }
}
