/** Opens an empty popup immediately, while the browser still attributes it to the click. */
export declare function openPopup(): Window;
/** Returns a promise that is rejected if the popup is closed without a response. */
export declare function closed(popup: Window, stop: AbortSignal): Promise<never>;
/** Loads a URL in a hidden frame and returns its final URL, which must be of this origin. */
export declare function visit(url: string): Promise<URL>;
