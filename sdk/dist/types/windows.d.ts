/** Opens an empty popup at once, while the browser still sees that it was asked for. */
export declare function openPopup(): Window;
/** Rejects when a popup was closed without an answer. */
export declare function closed(popup: Window, stop: AbortSignal): Promise<never>;
/** Loads a URL in a hidden frame, and gives where it ends, if that is a page of ours. */
export declare function visit(url: string): Promise<URL>;
